"""The command, run as ``python -m polars_wroc``."""

from __future__ import annotations

import sys

from polars_wroc.cli import main

sys.exit(main())
