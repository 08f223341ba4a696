"""Types of arrays that statistics are computed from, and how exact the numbers in them are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Rates that differ by less are the same but for rounding.
TOLERANCE = 1e-12
