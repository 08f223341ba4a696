"""What readers see of eight audits and of single findings is what files hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sentences
from audit_snapshots import AUDITS, FOLDER, texts_of

import polars_wroc as wroc

RENEW = "renew the files by `python tools/renew.py snapshots` and look at their diff"


@pytest.mark.parametrize("make", AUDITS, ids=lambda make: make.__name__)
def test_an_audit_reads_as_before(make: Callable[[], wroc.Audit]) -> None:
    for suffix, text in texts_of(make()).items():
        kept = FOLDER / f"{make.__name__}.{suffix}"
        assert text == kept.read_text(encoding="utf-8"), f"{kept.name}: {RENEW}"


def test_sentences_read_as_before() -> None:
    assert sentences.write() == sentences.FILE.read_text(encoding="utf-8"), RENEW
