"""Rows by descending score: cumulative sums, confusion curve, placements, areas, hulls."""
