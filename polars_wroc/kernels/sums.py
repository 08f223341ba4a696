"""What a walk along the rows of a group adds up, in the order of its results."""

# Over the rows of a class. A row has the weight w and the placement value p; its independent unit
# has the weight u, which is w, or 1 where weights are frequencies.
# rows: 1; weight: w; squares: w u; cubes: w u u; placements: w p; first: w u p; second: w u p p.
CLASS_SUMS = ("rows", "weight", "squares", "cubes", "placements", "first", "second")
# ranked: over negatives, w times the share of positives above; precision: over positives, w times
# the precision at their score; distance: the largest difference between tpr and fpr, not a sum.
CURVE_SUMS = ("ranked", "precision", "distance")
# The area between the curves of a group and of the rest, after the weights of the positives (y) and
# of the negatives (x) in both.
AREA_SUMS = ("y_own", "x_own", "y_rest", "x_rest", "area")
