"""Metrics of decisions at a threshold, and the choice of one."""
