"""Tables of curves, and of points on them."""
