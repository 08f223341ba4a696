"""Methods: every function on scores, frames and counts."""
