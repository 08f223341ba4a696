"""The compiled engine: sorts and walks over arrays, compiled by numba on first use."""

from __future__ import annotations

# Over the rows of a class. A row has the weight w and the placement value p; its independent unit
# has the weight u, which is w, or 1 where weights are frequencies.
# rows: 1; weight: w; squares: w u; cubes: w u u; placements: w p; first: w u p; second: w u p p.
CLASS_SUMS = ("rows", "weight", "squares", "cubes", "placements", "first", "second")
# Sums that do not depend on the ranks of the rows: of both classes the weights w, then w w, then
# the numbers of rows, then w and w w times the score; of both together w and w w times its square,
# and the numbers of scores that are not from 0 to 1, and of those that are 0 or 1.
UNRANKED_SUMS = (
    *("weight_pos", "weight_neg", "squares_pos", "squares_neg", "rows_pos", "rows_neg"),
    *("scores_pos", "scores_neg", "scores_squares_pos", "scores_squares_neg"),
    *("second_scores", "second_scores_squares", "outside_0_to_1", "extremes"),
)
# ranked: over negatives, w times the share of positives above; precision: over positives, w times
# the precision at their score; distance: the largest difference between tpr and fpr, not a sum.
CURVE_SUMS = ("ranked", "precision", "distance")
# Over the rows in a bin of the logit, whose number times the width is where it begins: the weights
# of both classes, then their squares, times the Chebyshev polynomials of the place, by degree.
BIN, DEGREES = "__fit_bin", 8
FIT_WEIGHTS = tuple(f"__fit_{name}{side}" for name in ("", "squares_") for side in ("pos", "neg"))
MOMENTS = tuple(f"{name}_{k}" for name in FIT_WEIGHTS for k in range(DEGREES))
