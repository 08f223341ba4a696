"""Check that what the simulations compute for many replicates is what the library returns."""

from __future__ import annotations

import numpy as np
import polars as pl
from bent_designs import TILTS, EventGroups, Events
from designs import Groups
from polars.testing import assert_frame_equal
from simulation import REPLICATE, SEGMENT, gaps, largest_gaps, rate_tests
from simulation import THRESHOLD as THRESHOLD_OF_RATES

import polars_wroc as wroc

REPLICATES = 3
THRESHOLD = 2.0


def check_agreement() -> None:
    """Compare all columns of a few replicates with those of `group_gaps` and `fairness`.

    Raises
    ------
    AssertionError
        If they differ.
    """
    for sizes, reference in (
        ([(20, 60)] * 2, "rest"),
        ([(10, 30), (20, 60), (40, 120)], "rest"),
        ([(10, 30), (20, 60), (40, 120)], "overall"),
        ([(10, 30), (20, 60), (40, 120)], "2"),
    ):
        setting = Groups(sizes, 0.9, "lognormal", "unequal")
        frame = setting.draw(np.random.default_rng(len(sizes)), REPLICATES)
        of_gaps = gaps(frame, reference, threshold=THRESHOLD)
        of_fairness = largest_gaps(frame, THRESHOLD)
        for replicate in range(REPLICATES):
            own = pl.col(REPLICATE) == replicate
            _check_replicate(
                frame.filter(own), reference, of_gaps.filter(own), of_fairness.filter(own)
            )


def check_rate_tests() -> None:
    """Compare the p-values of `rate_tests` with those of `group_gaps`.

    Raises
    ------
    AssertionError
        If they differ.
    """
    for count, reference in ((2, "1"), (4, "rest"), (4, "2")):
        for tilt in ("none", "lognormal", "rising"):
            setting = EventGroups([Events(60, TILTS[tilt])] * count, (0.1,) * count)
            frame = setting.draw(np.random.default_rng(count), 5 * REPLICATES)
            ours = rate_tests(frame, reference)
            wanted = gaps(frame, reference, threshold=THRESHOLD_OF_RATES, metrics=["tpr"])
            wanted = wanted.filter(pl.col(SEGMENT) != reference)
            keys = [pl.col(REPLICATE).cast(pl.Int64), pl.col(SEGMENT).cast(pl.Int64), "p_value"]
            tables = (each.select(keys).sort(REPLICATE, SEGMENT) for each in (ours, wanted))
            assert_frame_equal(*tables)


def _check_replicate(
    frame: pl.DataFrame, reference: object, of_gaps: pl.DataFrame, of_fairness: pl.DataFrame
) -> None:
    weight = "weight"
    expected = wroc.group_gaps(
        frame,
        "label",
        "score",
        attributes=SEGMENT,
        weight=weight,
        reference=reference,
        threshold=THRESHOLD,
        adjust="none",
        min_rows=0,
    )
    metric = pl.col("metric").cast(pl.Enum(expected["metric"].unique(maintain_order=True)))
    ours = of_gaps.sort(SEGMENT, metric).with_columns(model=pl.lit("score"))
    assert_frame_equal(ours.select(expected.columns), expected, check_dtypes=False)
    whole = wroc.fairness(
        frame,
        "label",
        "score",
        attributes=SEGMENT,
        weight=weight,
        threshold=THRESHOLD,
        min_rows=0,
    )
    wanted = whole.filter(pl.col("metric").is_in(of_fairness["metric"].to_list())).sort("metric")
    held = [name for name in wanted.columns if name in of_fairness.columns]
    ours = of_fairness.sort("metric").with_columns(model=pl.lit("score")).select(held)
    assert_frame_equal(ours, wanted.select(held), check_dtypes=False)


if __name__ == "__main__":
    check_agreement()
    check_rate_tests()
    print("The simulations agree with the library.")
