"""Numbers of a score: areas, their confidence intervals and comparisons."""
