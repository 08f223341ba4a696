"""Comparisons of groups: gaps, fairness, ranking across groups, equalized thresholds."""
