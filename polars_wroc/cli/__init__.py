"""The ``polars-wroc`` command."""

from __future__ import annotations

from polars_wroc.cli.app import main

__all__ = ["main"]
