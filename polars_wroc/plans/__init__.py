"""Helpers to write, check and run Polars query plans."""
