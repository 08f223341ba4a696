"""Polars plans: how they are written, checked and run."""
