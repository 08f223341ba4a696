"""Metrics of a score: areas under curves, their confidence intervals and comparisons."""
