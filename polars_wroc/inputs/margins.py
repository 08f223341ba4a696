"""What differences between groups are taken for none unless the caller says otherwise."""

from __future__ import annotations

# Of rates and AUCs: smaller gaps.
MARGIN = 0.05
# Of selection rates: the least ratio to the highest (29 CFR 1607.4 D).
FOUR_FIFTHS = 0.8
