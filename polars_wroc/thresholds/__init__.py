"""Metrics at a threshold, and rules that choose a threshold."""
