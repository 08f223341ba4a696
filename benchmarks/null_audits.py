"""How often an audit flags something although its segments are all alike.

    python benchmarks/null_audits.py [--audits 1500] [--rows 1500]

Each audit has rows, labels, weights and segments of its own. It flags something where a p-value,
adjusted by Holm's method for all tests of the audit, is at most 0.05.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import polars as pl

from polars_wroc.groups.gaps import GapTests, measure_gaps
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.collect import collect
from polars_wroc.thresholds.search import common_threshold

LEVEL = 0.05
ATTRIBUTES = ((2,), (3,), (5,), (2, 3, 5))
_AUDIT, _SEGMENT = "audit", "segment"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1500)
    parser.add_argument("--rows", type=int, default=1500)
    options = parser.parse_args()
    print("| segments of the attributes | weights | AUCs | AUCs and rates |")
    print("| --- | --- | --- | --- |")
    for sizes in ATTRIBUTES:
        for weight in (None, "w"):
            shares = [flagged(sizes, weight, t, options.audits, options.rows) for t in (None, 0.8)]
            shown = " | ".join(f"{share:.3f}" for share in shares)
            names = ", ".join(map(str, sizes))
            print(f"| {names} | {'lognormal' if weight else 'none'} | {shown} |")


def flagged(
    sizes: tuple[int, ...], weight: str | None, threshold: float | None, audits: int, rows: int
) -> float:
    """Share of audits that flag something."""
    p_values = pl.concat(tests_of_attributes(sizes, weight, threshold, audits, rows))
    smallest = p_values.drop_nulls().group_by(_AUDIT).agg(pl.col("p").min(), tests=pl.len())
    # Holm's method finds something where Bonferroni's does.
    return float(smallest.select((pl.col("p") * pl.col("tests") <= LEVEL).mean()).item())


def tests_of_attributes(
    sizes: tuple[int, ...], weight: str | None, threshold: float | None, audits: int, rows: int
) -> Iterator[pl.DataFrame]:
    """All p-values of many audits, one attribute after the other."""
    random = np.random.default_rng(1979)
    count = audits * rows
    positive = random.random(count) < 0.3
    frame = pl.DataFrame(
        {
            _AUDIT: np.repeat(np.arange(audits), rows),
            "y": positive,
            "s": random.normal(size=count) + 1.2 * positive,
            "w": random.lognormal(sigma=0.7, size=count),
        }
    )
    tests = GapTests(level=0.95, weight_type="probability", adjust="none", min_rows=30)
    for size in sizes:
        segments = pl.Series(_SEGMENT, random.integers(size, size=count))
        keys = [_SEGMENT, _AUDIT]
        read = read_rows(frame.with_columns(segments), "y", "s", weight, keys, None)
        # Segments of different audits are never compared, like those of different models.
        separate = Rows(read.frame.rename(read.names), keys, [_AUDIT])
        thresholds = None if threshold is None else common_threshold(separate, threshold)
        gaps = collect(measure_gaps(separate, "rest", thresholds, tests))
        # Of two segments each is the rest of the other, which is one test.
        pair = size == 2
        counted = gaps.filter(pl.col(_SEGMENT) > 0) if pair else gaps
        names = [name for name in gaps.columns if name.endswith("_gap_p_value")]
        yield counted.select(_AUDIT, pl.concat_list(names).alias("p")).explode("p")


if __name__ == "__main__":
    main()
