"""Labels and weights at a horizon, and shares of events, from their definitions in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import polars as pl

# Times, events and scores of ten rows, worked by hand.
WORKED = pl.DataFrame(
    {
        "t": [1, 2, 2, 3, 4, 5, 5, 6, 8, 9],
        "e": [1, 0, 1, 1, 0, 1, 0, 1, 0, 1],
        "s": [0.9, 0.3, 0.8, 0.4, 0.6, 0.7, 0.2, 0.5, 0.1, 0.35],
    }
)


class Timed(NamedTuple):
    """A row: a time, 1 for the event, 0 for censoring, 2 for a competing event, and a weight."""

    time: float
    event: int
    weight: float


# A row of which a part may be missing.
Given: TypeAlias = tuple[float | None, int | None, float | None]


def complete(given: Sequence[Given]) -> list[Timed]:
    """Leave out missing rows."""
    return [
        Timed(time, event, weight)
        for time, event, weight in given
        if time is not None and event is not None and weight is not None
    ]


def uncensored(rows: Sequence[Timed], until: float, *, including: bool) -> float:
    """Kaplan-Meier of censoring until a time, events before censorings of the same time."""
    product = 1.0
    for time in sorted({row.time for row in rows}):
        if time > until or (time == until and not including):
            break
        leaving = sum(row.weight for row in rows if row.time == time and row.event != 0)
        observed = sum(row.weight for row in rows if row.time >= time) - leaving
        censored = sum(row.weight for row in rows if row.time == time and row.event == 0)
        if censored:
            product *= 1 - censored / observed
    return product


def at_horizon(given: Sequence[Given], horizon: float) -> list[tuple[int | None, float | None]]:
    """Label and weight of each row, competing events as negatives."""
    rows = complete(given)
    beyond = uncensored(rows, horizon, including=True)
    found: list[tuple[int | None, float | None]] = []
    for each in given:
        row = next(iter(complete([each])), None)
        if row is None or (row.event == 0 and row.time <= horizon) or beyond < 1e-9:
            found.append((None, None))
        elif row.time > horizon:
            found.append((0, row.weight / beyond))
        else:
            share = uncensored(rows, row.time, including=False)
            found.append((int(row.event == 1), row.weight / share))
    return found


def incidence(rows: Sequence[Timed], horizon: float) -> float:
    """Cumulative incidence of Aalen and Johansen; without competing events 1 - Kaplan-Meier."""
    free, found = 1.0, 0.0
    for time in sorted({row.time for row in rows if row.time <= horizon}):
        observed = sum(row.weight for row in rows if row.time >= time)
        if observed:
            events = sum(row.weight for row in rows if row.time == time and row.event == 1)
            leaving = sum(row.weight for row in rows if row.time == time and row.event != 0)
            found += free * events / observed
            free *= 1 - leaving / observed
    return found
