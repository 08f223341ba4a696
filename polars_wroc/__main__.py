"""``python -m polars_wroc``."""

import sys

from polars_wroc.cli import main

sys.exit(main())
