"""What tests that start processes share."""

from __future__ import annotations

import os
import sys

# Nothing else of the environment: PYTHONUNBUFFERED alone hides what a full disk does to a buffer.
PLAIN = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
COMMAND = [sys.executable, "-m", "polars_wroc"]
