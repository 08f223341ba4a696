"""The command as a report names it."""

from __future__ import annotations

import pytest

from polars_wroc.cli.app import write_command_line


@pytest.mark.parametrize(
    "secret", ["s3://user:pass@bucket/x.parquet", "https://h/x.parquet?sig=pass"]
)
def test_commands_are_without_credentials(secret: str) -> None:
    assert "pass" not in write_command_line(["audit", secret, "--label", "y"])
