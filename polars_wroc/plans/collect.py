"""Run plans, and return the same kind of frame as the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import polars as pl
from polars._typing import EngineType

from polars_wroc.plans.checks import message_of

FrameT = TypeVar("FrameT", pl.DataFrame, pl.LazyFrame)


def like_input(frame: FrameT, plan: pl.LazyFrame) -> FrameT:
    """Return a lazy plan for a lazy input, its result for an eager one."""
    if isinstance(frame, pl.DataFrame):
        return collect(plan)
    return plan


def collect(plan: pl.LazyFrame, *, reproducible: bool = False) -> pl.DataFrame:
    """Run a plan; a failed check raises its own message only.

    If ``reproducible``, values are added up in their order, so that the same give the same bits.
    """
    with _only_message():
        return plan.collect(engine=_engine(reproducible=reproducible))


def collect_all(plans: Sequence[pl.LazyFrame], *, reproducible: bool = False) -> list[pl.DataFrame]:
    """Run plans that share their source together, each as `collect` would."""
    with _only_message():
        return pl.collect_all(plans, engine=_engine(reproducible=reproducible))


def _engine(*, reproducible: bool) -> EngineType:
    return "in-memory" if reproducible else "auto"


class NoBatchesError(Exception):
    """Polars hands over no batches, or not in the way it used to."""


def batches(plan: pl.LazyFrame, rows: int) -> Iterator[pl.DataFrame]:
    """Run a plan and hand over its rows in their order, about so many at a time.

    Polars calls the method unstable; `NoBatchesError` comes before the first batch only.
    """
    try:
        handed = plan.collect_batches(chunk_size=rows, maintain_order=True)
    except (AttributeError, TypeError, NotImplementedError) as error:
        raise NoBatchesError from error
    with _only_message():
        yield from handed


@contextmanager
def _only_message() -> Iterator[None]:
    try:
        yield
    except pl.exceptions.InvalidOperationError as error:
        sentence = message_of(error)
        if sentence is None:
            raise
        raise pl.exceptions.InvalidOperationError(sentence) from None
