"""The ``polars-wroc`` command."""

from polars_wroc.cli.main import main

__all__ = ["main"]
