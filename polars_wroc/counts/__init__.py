"""Counts of rows by score or score bin, which can be merged."""
