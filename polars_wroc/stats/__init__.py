"""Distributions, proportions, differences and tests that know nothing of ROC curves."""
