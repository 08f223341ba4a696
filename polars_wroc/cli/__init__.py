"""The ``polars-wroc`` command."""

from __future__ import annotations

from collections.abc import Sequence

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    try:
        # An interrupt while it is imported ends the command as silently as a later one.
        from polars_wroc.cli.app import run  # noqa: PLC0415

        return run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
