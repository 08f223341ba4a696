"""Counts, summaries and audits on a cluster of Dask workers; needs ``polars-wroc[dask]``.

The functions take a `distributed.Client` and parts of the data, which the workers read: one
LazyFrame or file for each task. Polars uses all cores that it sees, so a worker should have one
thread (``threads_per_worker=1``). If several workers share a machine, set the environment variable
``POLARS_MAX_THREADS`` to each worker's number of cores before it starts. If a worker dies, its
tasks run again on another; the results do not change.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from polars_wroc.audits.audit import AuditArguments
from polars_wroc.audits.in_ranges import audit_by
from polars_wroc.audits.result import Audit
from polars_wroc.audits.tables import AuditReference, Text
from polars_wroc.counts.score_counts import merge_counts
from polars_wroc.counts.score_counts import score_counts as counts_of_rows
from polars_wroc.files.sources import each_file, scan
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import MARGIN
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import Favorable
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.auc_interval import Interval, Method
from polars_wroc.metrics.score_ranges import (
    ROWS_PER_RANGE,
    RangePasses,
    ResultT,
    ScoreRange,
    Span,
    add_bin_counts,
    count_in_bins,
    read_parts,
    run,
    summarise_ranges,
    together,
)
from polars_wroc.plans.queries import collect
from polars_wroc.stats.difference_tests import Adjust
from polars_wroc.thresholds.rules import Threshold

try:
    from dask.sizeof import sizeof
    from distributed import Client, Future
except ImportError as _error:
    _MSG = "polars_wroc.dask needs distributed: pip install 'polars-wroc[dask]'"
    raise ImportError(_MSG) from _error


Part: TypeAlias = pl.DataFrame | pl.LazyFrame | str | Path
Parts: TypeAlias = Part | Sequence[Part]

__all__ = ["audit", "score_counts", "summary"]

# The number of results that one task adds up.
_AT_ONCE = 8


# Workers that know the size of their results can move them to disk in time.
sizeof.register(pl.DataFrame, lambda frame: int(frame.estimated_size()))


def score_counts(
    client: Client,
    parts: Parts,
    label: IntoColumn | None,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int | None = None,
) -> pl.DataFrame:
    """Count rows by score on the workers, for all results of `from_counts`.

    Parameters
    ----------
    client
        A `distributed.Client`.
    parts
        Parts of the data, one task each: LazyFrames that the workers can read, names of files or
        globs, with one part for each file, or small DataFrames.
    label, score, weight, by, pos_label, bins
        As for `polars_wroc.score_counts`. Without ``bins`` all distinct scores of a group must
        fit into the memory of one worker and of the client.

    Returns
    -------
    pl.DataFrame
        The result of `polars_wroc.score_counts` for all rows. Pass it to `from_counts` for
        ``summary``, ``audit`` with its report, curves and others. These are exact without
        ``bins``; with them the AUC has bounds. `summary` and `audit` of this
        module are exact though no machine holds all scores.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `polars_wroc.score_counts`; also for parts with different groups.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> from distributed import Client
    >>> from polars_wroc.dask import score_counts
    >>> days = [
    ...     pl.LazyFrame({"y": [1, 0], "s": [0.9, 0.7]}),
    ...     pl.LazyFrame({"y": [1, 0], "s": [0.7, 0.1]}),
    ... ]
    >>> with Client(n_workers=1, processes=False, dashboard_address=None) as client:
    ...     counts = score_counts(client, days, "y", "s")
    >>> wroc.from_counts(counts).summary().select("n", "auc")
    shape: (1, 2)
    ┌─────┬───────┐
    │ n   ┆ auc   │
    │ --- ┆ ---   │
    │ i64 ┆ f64   │
    ╞═════╪═══════╡
    │ 4   ┆ 0.875 │
    └─────┴───────┘
    """
    _check(client)
    plans = [
        counts_of_rows(frame, label, score, weight=weight, by=by, pos_label=pos_label, bins=bins)
        for frame in _frames(parts)
    ]
    counts = client.map(collect, plans, pure=False)
    return _add_up(client, merge_counts, counts)


def summary(
    client: Client,
    parts: Parts,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: Method = "score",
    rows_per_range: int = ROWS_PER_RANGE,
) -> pl.DataFrame:
    """`summary` on a cluster, exactly, with a task for each range of scores.

    Parameters
    ----------
    client, parts
        As for `score_counts`.
    label, score, weight, by, pos_label, level, method
        As for `polars_wroc.summary`.
    rows_per_range
        About how many rows a task sorts. More ranges keep more workers busy.

    Returns
    -------
    pl.DataFrame
        The result of `polars_wroc.summary` for all rows; numbers may differ in the last digits.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `polars_wroc.summary`; also for parts with different groups and for
        ``rows_per_range`` below 1.

    Notes
    -----
    The method is that of `summary_in_ranges`. Workers read each part twice: to count it in bins,
    and to divide it into ranges. A worker needs memory for several times one part and one range.

    Examples
    --------
    >>> import polars as pl
    >>> from distributed import Client
    >>> from polars_wroc.dask import summary
    >>> days = [
    ...     pl.LazyFrame({"y": [1, 0], "s": [0.9, 0.7]}),
    ...     pl.LazyFrame({"y": [1, 0], "s": [0.7, 0.1]}),
    ... ]
    >>> with Client(n_workers=1, processes=False, dashboard_address=None) as client:
    ...     table = summary(client, days, "y", "s")
    >>> table.select("n", "auc")
    shape: (1, 2)
    ┌─────┬───────┐
    │ n   ┆ auc   │
    │ --- ┆ ---   │
    │ i64 ┆ f64   │
    ╞═════╪═══════╡
    │ 4   ┆ 0.875 │
    └─────┴───────┘
    """
    _check(client)
    interval = Interval(level, method)
    rows_per_range = arguments.whole_number("rows_per_range", rows_per_range, low=1)
    rows = read_parts("parts", _frames(parts), label, score, weight, by, pos_label)
    return summarise_ranges(_PassesOnCluster(client, rows), interval, rows_per_range)


def audit(
    client: Client,
    parts: Parts,
    label: IntoColumn,
    score: IntoColumns,
    *,
    attributes: IntoColumns,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    threshold: Threshold | None = None,
    intersections: bool = False,
    reference: AuditReference = "rest",
    level: float = 0.95,
    adjust: Adjust = "holm",
    min_rows: int = 30,
    margin: float = MARGIN,
    favorable: Favorable | None = None,
    method: Method = "score",
    rows_per_range: int = ROWS_PER_RANGE,
    text: Text | None = None,
    min_cell: int | None = None,
) -> Audit:
    """`audit` on a cluster, exactly, with a task for each range of scores.

    Parameters
    ----------
    client, parts
        As for `score_counts`.
    label, score, attributes, weight, pos_label, intersections, reference, level, adjust
        As for `polars_wroc.audit`.
    threshold
        As for `polars_wroc.audit`. By a rule, workers read each part a third time, for the rows of
        the range with the chosen threshold.
    min_rows, margin, favorable, method, text, min_cell
        As for `polars_wroc.audit`.
    rows_per_range
        About how many rows a task sorts. More ranges keep more workers busy.

    Returns
    -------
    Audit
        The result of `polars_wroc.audit` for all rows, with one row per attribute and segment (and
        model) in ``segments``; numbers may differ in the last digits.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `polars_wroc.audit`; also for parts with different groups and for
        ``rows_per_range`` below 1.

    Notes
    -----
    The method is that of `audit_in_ranges`. Workers read each part twice: to count it in bins, and
    to divide it into ranges. A worker needs memory for several times one part and one range, and
    the client for the counts, whose number grows with the combinations of attributes and the bins
    that have rows of them. Recorded decisions need `polars_wroc.audit`.

    Examples
    --------
    >>> import polars as pl
    >>> from distributed import Client
    >>> from polars_wroc.dask import audit
    >>> days = [
    ...     pl.LazyFrame({"y": [1, 0], "s": [0.9, 0.8], "sex": ["f", "f"]}),
    ...     pl.LazyFrame({"y": [1, 0], "s": [0.7, 0.1], "sex": ["m", "m"]}),
    ... ]
    >>> with Client(n_workers=1, processes=False, dashboard_address=None) as client:
    ...     table = audit(client, days, "y", "s", attributes="sex").table
    >>> table.filter(metric="auc").select("attribute", "segment", "n", "value")
    shape: (3, 4)
    ┌───────────┬─────────┬─────┬───────┐
    │ attribute ┆ segment ┆ n   ┆ value │
    │ ---       ┆ ---     ┆ --- ┆ ---   │
    │ str       ┆ str     ┆ i64 ┆ f64   │
    ╞═══════════╪═════════╪═════╪═══════╡
    │ overall   ┆ overall ┆ 2   ┆ 0.75  │
    │ sex       ┆ f       ┆ 1   ┆ 1.0   │
    │ sex       ┆ m       ┆ 1   ┆ 1.0   │
    └───────────┴─────────┴─────┴───────┘
    """
    _check(client)
    asked = AuditArguments.of(locals())
    passes = partial(_PassesOnCluster, client)
    return audit_by(passes, "parts", _frames(parts), asked, rows_per_range)


class _PassesOnCluster(RangePasses):
    """Passes on the workers of a cluster: all parts at once, and then all ranges at once."""

    def __init__(self, client: Client, parts: Sequence[Rows]) -> None:
        """Set the cluster and the parts."""
        super().__init__(parts)
        self._client = client

    def count(self, parts: Sequence[Rows]) -> pl.DataFrame:
        """Count each part in a task, and add up the counts."""
        counted = self._client.map(_count, parts, pure=False)
        return _add_up(self._client, add_bin_counts, counted, parts[0].keys)

    def read(
        self, ranges: Sequence[ScoreRange], task: Callable[[ScoreRange, Rows], ResultT]
    ) -> list[ResultT]:
        """Divide each part into ranges, and measure each range of all parts."""
        if not ranges:
            return []
        submit, spans = self._client.submit, [each.span for each in ranges]
        divided = [submit(_divide, part, spans, pure=False) for part in self.parts]
        measured = []
        for number, each in enumerate(ranges):
            # Only the rows of the range go to the worker that measures it.
            rows = [submit(operator.getitem, part, number, pure=False) for part in divided]
            keys = self.keys, self.model_keys
            measured.append(submit(_measure, rows, *keys, each, task, pure=False))
        results: list[ResultT] = self._client.gather(measured)
        return results


def _count(part: Rows) -> pl.DataFrame:
    return collect(count_in_bins(part))


def _divide(part: Rows, spans: Sequence[Span]) -> list[pl.DataFrame]:
    """Read a part once, and return its rows in each range."""
    read = replace(part, frame=collect(part.frame).lazy())
    return [collect(span.of(read).frame) for span in spans]


def _measure(
    parts: Sequence[pl.DataFrame],
    keys: list[str],
    model_keys: list[str],
    each: ScoreRange,
    task: Callable[[ScoreRange, Rows], ResultT],
) -> ResultT:
    return run(task, each, together([part.lazy() for part in parts], keys, model_keys))


def _add_up(
    client: Client, add: Callable[..., pl.DataFrame], tables: list[Future[Any]], *arguments: Any
) -> pl.DataFrame:
    """Add up tables on the workers, a few at a time, and fetch the result."""
    while len(tables) > 1:
        tables = [
            client.submit(add, tables[first : first + _AT_ONCE], *arguments, pure=False)
            for first in range(0, len(tables), _AT_ONCE)
        ]
    table: pl.DataFrame = tables[0].result()
    return table


def _check(client: Client) -> None:
    if not isinstance(client, Client) or client.asynchronous:
        arguments.reject_type("client", "be a distributed.Client that is not asynchronous", client)


def _frames(parts: Parts) -> list[pl.LazyFrame]:
    """Turn each part into a LazyFrame; each file is one part."""
    listed = [parts] if isinstance(parts, Part) else parts
    if not isinstance(listed, Sequence) or not listed:
        arguments.reject_type("parts", "be one or several LazyFrames or names of files", parts)
    each_file([str(part) for part in listed if isinstance(part, str | Path)], "parts")
    frames: list[pl.LazyFrame] = []
    for part in listed:
        if isinstance(part, str | Path):
            frames += [scan([name], "parts") for name in each_file([str(part)], "parts")]
        elif isinstance(part, pl.DataFrame | pl.LazyFrame):
            frames.append(part.lazy())
        else:
            arguments.reject_type("parts", "hold LazyFrames, DataFrames or names of files", part)
    return frames
