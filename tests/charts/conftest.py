"""Charts of tests have all digits, but those of tests that use ``rounded``."""

from __future__ import annotations

import pytest

from polars_wroc.charts import options


@pytest.fixture
def rounded() -> None:
    """Leave the numbers of charts rounded."""


@pytest.fixture(autouse=True)
def _digits(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "rounded" not in request.fixturenames:
        for name in ("_DIGITS", "_DIGITS_OF_COUNTS"):
            monkeypatch.setattr(options, name, 17)
