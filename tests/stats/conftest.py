"""What tests of functions of arrays share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture
def undefined_is_nan() -> Iterator[None]:
    """Let divisions by 0 and the like give NaN or infinity without a warning, as callers do."""
    with np.errstate(all="ignore"):
        yield
