"""What readers see of eight audits is what the files in `tests/snapshots/audits` hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from audit_snapshots import AUDITS, FOLDER, texts_of

import polars_wroc as wroc

RENEW = "renew the files by `python tools/renew.py snapshots` and look at their diff"


@pytest.mark.parametrize("make", AUDITS, ids=lambda make: make.__name__)
def test_an_audit_reads_as_before(make: Callable[[], wroc.Audit]) -> None:
    for suffix, text in texts_of(make()).items():
        kept = FOLDER / f"{make.__name__}.{suffix}"
        assert text == kept.read_text(encoding="utf-8"), f"{kept.name}: {RENEW}"
