"""The engine is chosen by a block, by the environment or by the number of rows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.plans import config

FEW = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
MANY = pl.DataFrame({"y": np.arange(2_000_000) % 2, "s": np.arange(2_000_000)})


def printed(text: str) -> str:
    """Run a program for which the environment chooses no engine, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != config.VARIABLE}
    done = subprocess.run(  # noqa: S603  (our own text)
        [sys.executable, "-c", text],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the seconds that the compiled engine takes to start, whatever ran before."""

    def costs(seconds: float) -> None:
        monkeypatch.setattr(config, "_start", lambda: seconds)

    costs(0.7)
    return costs


@pytest.mark.usefixtures("start")
@pytest.mark.parametrize(
    ("frame", "chosen", "when"),
    [
        (FEW, "auto", None),
        (MANY, "auto", "at once"),
        (MANY.lazy(), "auto", None),
        (MANY, "polars", None),
        (FEW, "compiled", "at once"),
        (FEW.lazy(), "compiled", "at collect"),
    ],
)
def test_choice(frame: Any, chosen: Any, when: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with wroc.Config(engine=chosen):
        assert config.compiled_when(frame) == when
    monkeypatch.setenv("POLARS_WROC_ENGINE", chosen)
    assert config.compiled_when(frame) == when


def test_rows_count_once_for_each_replicate(start: Any) -> None:
    with wroc.Config(engine="auto"):
        assert config.compiled_when(MANY.head(20_000), 99) is None
        assert config.compiled_when(MANY.head(20_000), 100) == "at once"
        assert config.compiled_when(MANY.head(20_000).lazy(), 100) is None
        start(5.0)
        assert config.compiled_when(MANY, 7) is None
        assert config.compiled_when(MANY, 8) == "at once"
        start(0.0)
        assert config.compiled_when(FEW) == "at once"


@pytest.mark.slow
def test_the_first_use_costs_more_where_nothing_is_kept_on_disk(tmp_path: Path) -> None:
    text = f"""
import os, sys
os.environ["NUMBA_CACHE_DIR"] = {str(tmp_path)!r}
from polars_wroc.plans import config
print(config._start())
folder = os.path.join({str(tmp_path)!r}, "kernels_0123")
os.mkdir(folder)
open(os.path.join(folder, "sorting.nbi"), "w").close()
print(config._start())
import polars_wroc.kernels.compiling
print(config._start())
"""
    first, later, loaded = map(float, printed(text).split())
    assert first > later > loaded == 0


def test_the_innermost_block_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_WROC_ENGINE", "compiled")
    with wroc.Config(engine="compiled"), wroc.Config(engine="polars"):
        with wroc.Config(engine="compiled"):
            assert config.compiled_when(FEW) == "at once"
        assert config.compiled_when(FEW) is None
    assert config.compiled_when(FEW) == "at once"


def test_unknown_engines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "must be one of 'auto', 'polars', 'compiled'; found 'fast'"
    with pytest.raises(ValueError, match=f"^`engine` {names}$"):
        wroc.Config(engine="fast")  # type: ignore[arg-type]
    monkeypatch.setenv("POLARS_WROC_ENGINE", "fast")
    with pytest.raises(ValueError, match=f"^`POLARS_WROC_ENGINE` {names}$"):
        config.compiled_when(FEW)


@pytest.mark.slow
def test_without_numba_plans_compute_and_an_error_says_what_to_install() -> None:
    text = """
import sys
sys.modules["numba"] = None
import polars as pl, polars_wroc as wroc
from polars_wroc.plans import config
many = pl.DataFrame({"y": [0, 1], "s": [0.5, 0.6]}).select(pl.all().repeat_by(1_000_000).explode())
print(config.compiled_when(many), wroc.summary(many, "y", "s")["auc"].item())
try:
    wroc.Config(engine="compiled")
except ModuleNotFoundError as error:
    print(error)
"""
    assert printed(text).splitlines() == [
        "None 1.0",
        "`engine` 'compiled' needs numba; install it with pip install 'polars-wroc[fast]'",
    ]


@pytest.mark.slow
def test_a_thread_that_outlives_the_main_one_computes() -> None:
    text = """
import threading, time
import polars as pl, polars_wroc as wroc
frame = pl.DataFrame({"y": [0, 1], "s": [0.5, 0.6]})
def late():
    threading.main_thread().join()
    with wroc.Config(engine="compiled"):
        print(wroc.summary(frame, "y", "s")["auc"].item())
threading.Thread(target=late).start()
"""
    assert printed(text) == "1.0\n"


@pytest.mark.slow
def test_numba_is_imported_where_it_is_used() -> None:
    text = """
import sys
import polars as pl, polars_wroc as wroc
frame = pl.DataFrame({"y": [0, 1], "s": [0.5, 0.6]})
wroc.summary(frame, "y", "s")
print("numba" in sys.modules)
with wroc.Config(engine="compiled"):
    wroc.summary(frame, "y", "s")
print("numba" in sys.modules)
"""
    assert printed(text).split() == ["False", "True"]
