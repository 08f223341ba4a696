"""The line of progress: on a terminal only, after some seconds, and not for good."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc import config
from polars_wroc.config import CLEAR_LINE, Progress, clock


class Terminal(io.StringIO):
    """Text that calls itself a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal on which the line appears at once and is drawn each time."""
    shown = Terminal()
    # pytest puts another one into `sys` after the fixtures.
    monkeypatch.setattr(config, "sys", SimpleNamespace(stderr=shown))
    monkeypatch.setattr(config, "_PATIENCE", 0.0)
    monkeypatch.setattr(config, "_INTERVAL", 0.0)
    return shown


def test_counts_and_removes_the_line(terminal: Terminal) -> None:
    with Progress(2_000, "replicates") as line:
        line.advance(999.5)
        line.advance(500.5)
    lines = terminal.getvalue().split(CLEAR_LINE)
    assert lines == ["", "1,000 of 2,000 replicates, 0:00", "1,500 of 2,000 replicates, 0:00", ""]


def test_removes_the_line_on_an_error(terminal: Terminal) -> None:
    def interrupted() -> None:
        with Progress(2, "replicates") as line:
            line.advance()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.getvalue().endswith(CLEAR_LINE)


def test_what_is_done_soon_shows_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "_PATIENCE", 60.0)
    with Progress(1, "replicates") as line:
        line.advance()
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("stderr", [io.StringIO(), None])
def test_without_a_terminal_nothing_is_shown(
    stderr: io.StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(config, "_PATIENCE", 0.0)
    with Progress(1, "replicates") as line:
        line.advance()
    assert stderr is None or stderr.getvalue() == ""


@pytest.mark.slow
def test_resampling_shows_progress(terminal: Terminal) -> None:
    frame = pl.DataFrame({"g": [0, 0, 1, 1], "y": [0, 1] * 2, "s": [0.1, 0.2, 0.3, 0.1]})
    wroc.bootstrap(frame, "y", "s", metrics="ks", resamples=40)
    assert "41 of 41 replicates, 0:" in terminal.getvalue()
    wroc.abroca_test(frame, "y", "s", by="g", permutations=40)
    assert "permutations, 0:" in terminal.getvalue()
    assert terminal.getvalue().endswith(CLEAR_LINE)


def test_clock() -> None:
    assert [clock(0.9), clock(61.2), clock(3600)] == ["0:00", "1:01", "60:00"]
