"""How large differences between groups must be to matter, unless the caller says otherwise."""

from __future__ import annotations

# Of rates and AUCs: smaller gaps.
MARGIN = 0.05
# Of selection rates: by convention, the least ratio to the highest (first in 29 CFR 1607.4 D).
FOUR_FIFTHS = 0.8
