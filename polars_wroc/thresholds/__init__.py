"""Metrics at a threshold, and rules that choose a threshold."""

from polars_wroc.thresholds import rules as rules
