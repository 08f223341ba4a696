"""An audit of segments: measured, compared, judged and reported."""
