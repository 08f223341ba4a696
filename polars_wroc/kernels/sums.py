"""What a walk along the rows of a group adds up, in the order of its results."""

# Over the rows of a class: their number, weight, weight times that of the unit, and times the
# square of that; placement values times the weight, and times weight and unit; its second moment.
CLASS_SUMS = ("rows", "weight", "squares", "cubes", "placements", "first", "second")
# Over negatives the share of positives above them, over positives the precision there; and the
# largest distance between the rates.
CURVE_SUMS = ("ranked", "precision", "distance")
