"""Verdicts on gaps and the smallest gaps that would have been found: against plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import plain_score
import polars as pl
import pytest
from plain_rates import Side, common_test, rate_of, side_of, smallest, student_score
from polars.testing import assert_frame_equal
from scipy import stats
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc

RATES = ("selection_rate", "tpr", "fpr", "ppv", "npv")
METRICS = ("auc", *RATES)
VERDICTS = {"equivalent", "different", "inconclusive"}
REFERENCES = ["rest", "overall", "b", "best"]


def people(seed: int, n: int, spread: float = 0.0) -> pl.DataFrame:
    """Rows of four groups; ``spread`` is how much worse the first ones are ranked."""
    random = np.random.default_rng(seed)
    group = random.integers(0, 4, n)
    positive = random.random(n) < 0.4
    signal = positive * (1.5 - spread * (group == 0)) - spread / 2 * (group == 1)
    return pl.DataFrame(
        {
            "g": np.array(list("abcd"))[group],
            "y": positive.astype(int),
            "s": (signal + random.normal(size=n)).round(2),
            "w": random.lognormal(sigma=0.5, size=n),
        }
    )


def gaps(frame: pl.DataFrame, **options: Any) -> pl.DataFrame:
    options = {"weight": "w", "threshold": 0.5, **options}
    table: pl.DataFrame = wide_gaps(frame, "y", "s", by="g", **options)
    return table


def number_of_tests(table: pl.DataFrame) -> int:
    return sum(table[f"{metric}_gap_p_value"].count() for metric in METRICS)


@pytest.mark.parametrize("reference", sweep(["rest", "overall", "b"], fast=3))
@pytest.mark.parametrize("adjust", sweep(["holm", "bh", "none"], fast=["holm", "none"]))
def test_aucs_against_the_definition(reference: str, adjust: str) -> None:
    frame = people(1, 1_500, 0.6)
    table = gaps(frame, reference=reference, adjust=adjust, margin=0.1)
    error = 0.05 / (1 if adjust == "none" else number_of_tests(table))
    narrow = plain_score.gaps(frame, reference, 1 - 2 * error)
    aucs = {g: plain_score.auc_of(frame.filter(g=g)) for g in "abcd"}
    seen = set()
    for row in table.rows(named=True):
        gap, own = narrow[row["g"]], aucs[row["g"]]
        if gap is None:
            assert [row["auc_gap_detectable"], row["auc_gap_verdict"]] == [None, None]
            continue
        others = [auc for g, auc in aucs.items() if auc and g != row["g"]]
        other = aucs["b"] if reference == "b" else plain_score.mean_of(others)
        assert own
        assert other
        sides = [
            Side(plain_score.pool(auc), *[plain_score.test_size(auc)] * 2) for auc in (own, other)
        ]
        expected = smallest(other.auc, sides, stats.norm.isf(error / 2), other.auc - 0.5)
        if reference == "overall":
            assert expected
            expected *= other.pairs / (own.pairs + other.pairs)
        assert row["auc_gap_detectable"] == pytest.approx(expected, rel=1e-7)
        alike = gap.low > -0.1 and gap.high < 0.1
        different = row["auc_gap_p_adjusted"] <= 0.05
        verdict = "equivalent" if alike else "different" if different else "inconclusive"
        assert row["auc_gap_verdict"] == verdict
        seen.add(verdict)
    assert len(seen) >= 2


@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_verdicts_follow_from_the_table_at_another_level(reference: str) -> None:
    """Of one test its interval has the level that the two one-sided tests need."""
    seen = set()
    for seed in range(4):
        frame = people(seed, 200 * 3 ** (seed % 4), 0.8 * (seed % 2))
        table = gaps(frame, reference=reference, margin=0.15)
        level, named = 1 - 0.1 / number_of_tests(table), reference
        if reference == "best":
            # One of four was picked: half the error of a test is that of each of two pairs.
            level = 1 - 0.05 / number_of_tests(table)
            named = table.filter(pl.col("auc_gap").is_null())["g"].item()
        narrow = gaps(frame, reference=named, level=level)
        for metric in METRICS:
            gap = f"{metric}_gap"
            alike = (narrow[f"{gap}_low"] > -0.15) & (narrow[f"{gap}_high"] < 0.15)
            different = table[f"{gap}_p_adjusted"] <= 0.05
            rows = zip(table[gap], alike, different, table[f"{gap}_verdict"], strict=True)
            for value, is_alike, is_different, found in rows:
                expected = "equivalent" if is_alike else "different" if is_different else None
                unsaid = None if value is None else "inconclusive"
                assert found == (unsaid if value is None else expected or unsaid)
                seen.add(found)
    assert seen - {None} == VERDICTS


def test_rates_against_the_definition() -> None:
    table = gaps(people(3, 900), reference="overall")
    error = 0.05 / number_of_tests(table)
    frame = people(3, 900).with_columns(d=pl.col("s") >= 0.5)
    for row in table.rows(named=True):
        rates, weights = [], []
        for rows in (frame.filter(pl.col("g") == row["g"]), frame.filter(pl.col("g") != row["g"])):
            w, d = rows["w"].to_numpy(), rows["d"].to_numpy()
            rate = rate_of(w[d], w[~d])
            assert rate
            rates.append(rate)
            weights.append(w.sum())
        quantile = student_score(stats.norm.isf(error / 2), common_test(*rates)[1])
        reference = rates[1].value
        expected = smallest(reference, [*map(side_of, rates)], quantile, reference)
        assert expected
        share = weights[1] / sum(weights)
        assert row["selection_rate_gap_detectable"] == pytest.approx(share * expected, rel=1e-7)


def test_alike_comes_before_different() -> None:
    """A small gap in very many rows."""
    n = 200_000
    place = pl.int_range(n)
    frame = pl.DataFrame({"i": range(n)}).select(
        g=pl.when(place % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b")),
        y=place // 2 % 2,
        s=pl.when(place // 4 % 100 < 50 - 2 * (place % 2)).then(0.9).otherwise(0.1),
    )
    options: Any = {"by": "g", "threshold": 0.5}
    row = wide_gaps(frame, "y", "s", **options).row(0, named=True)
    assert row["selection_rate_gap_p_adjusted"] < 1e-6
    assert row["selection_rate_gap_verdict"] == "equivalent"
    row = wide_gaps(frame, "y", "s", **options, margin=0.01).row(0, named=True)
    assert row["selection_rate_gap_verdict"] == "different"


def test_too_few_rows_are_too_little_data() -> None:
    table = gaps(people(4, 3_000), margin=0.5, min_rows=100_000)
    for metric in METRICS:
        assert table[f"{metric}_gap_verdict"].to_list() == ["inconclusive"] * 4
        assert table[f"{metric}_gap_detectable"].to_list() == [None] * 4


def test_no_gap_could_have_been_found() -> None:
    frame = people(5, 40)
    table = gaps(frame)
    assert table["auc_gap_detectable"].to_list() == [None] * 4
    assert table["auc_gap_verdict"].to_list() == ["inconclusive"] * 4


def test_nothing_is_said_of_what_is_not_compared() -> None:
    frame = people(6, 400).with_columns(y=pl.when(pl.col("g") == "c").then(1).otherwise("y"))
    table = gaps(frame, reference="b")
    for g, metric in (("b", "auc"), ("b", "tpr"), ("c", "auc"), ("c", "fpr")):
        row = table.filter(g=g)
        assert row[f"{metric}_gap_verdict"].item() is None
        assert row[f"{metric}_gap_detectable"].item() is None


def test_bins_widen_what_is_alike() -> None:
    frame = people(8, 4_000)
    options: Any = {"attributes": "g", "margin": 0.07}
    exact = wroc.from_counts(wroc.score_counts(frame, "y", "s", by="g"))
    coarse = wroc.from_counts(wroc.score_counts(frame, "y", "s", by="g", bins=20))
    found, wide = exact.group_gaps(**options), coarse.group_gaps(**options)
    assert "equivalent" in found["verdict"].to_list()
    assert "equivalent" not in wide["verdict"].to_list()
    assert (wide["detectable"] > found["detectable"]).all()


@pytest.mark.parametrize("reference", sweep(REFERENCES[:-1], fast=1))
def test_audit_counts_the_tests_of_all_attributes(reference: str) -> None:
    frame = people(9, 900).with_columns(h=pl.col("w") > 1)
    named: Any = {"g": "b"} if reference == "b" else reference
    audit = wroc.audit(
        frame, "y", "s", attributes=["g", "h"], threshold=0.5, favorable="selected", reference=named
    )
    rows = audit.table.filter(pl.col("metric").is_in(METRICS), pl.col("attribute") != "overall")
    # Of two groups that are compared with each other, only the first counts.
    of_first = rows.filter((pl.col("attribute") != "h") | (pl.col("segment") != "true"))
    repeats = reference in ("rest", "overall", "b")
    counted = of_first if repeats else rows
    level = 1 - 0.05 / counted["p_value"].count()
    alone = wroc.group_gaps(
        *(frame, "y", "s"),
        attributes="g",
        threshold=0.5,
        reference=reference,
        level=level,
        adjust="none",
    )
    columns = ["segment", "metric", "detectable"]
    assert_frame_equal(rows.filter(attribute="g").select(columns), alone.select(columns))


def test_clusters_are_judged_by_their_design() -> None:
    frame = people(10, 600).with_columns(c=pl.int_range(pl.len()) // 3)
    options: dict[str, Any] = {"threshold": 0.5, "design": "c", "min_rows": 30}
    audit = wroc.audit(frame, "y", "s", attributes="g", favorable="selected", **options)
    columns = ["segment", "metric", "detectable", "verdict"]
    expected = wroc.group_gaps(frame, "y", "s", attributes="g", **options).select(columns)
    found = audit.table.filter(pl.col("metric").is_in(METRICS), attribute="g").select(columns)
    assert_frame_equal(found, expected)
    assert found["detectable"].null_count() == 0


def test_the_margin_is_saved() -> None:
    audit = wroc.audit(people(12, 200), "y", "s", attributes="g", margin=0.1)
    assert audit.settings.as_dict()["margin"] == 0.1
