"""Counts of rows by score, which add up."""
