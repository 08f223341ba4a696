"""Impact ratios and standardized differences of 1,989 loan applications."""

from __future__ import annotations

from typing import Any

import aedt_audit
import numpy as np
import plain_picked
import polars as pl
import pytest
from fairlearn.metrics import demographic_parity_ratio
from scipy import stats
from wide_tables import wide_ratios

import polars_wroc as wroc

# The expected numbers are rounded, and were of another version of scikit-learn.
CLOSE = 0.002
RATIO = ("ratio",)
JOINT = ("ratio_low", "ratio_high")


def row(table: pl.DataFrame, segment: str, names: tuple[str, ...]) -> list[float]:
    return list(table.filter(segment=segment).select(names).row(0))


def test_scores(loans: pl.DataFrame) -> None:
    found = [loans["score"].min(), loans["score"].max(), loans["score"].median()]
    assert found == pytest.approx([0.0110, 0.9943, 0.92123], abs=CLOSE)


def test_decisions_of_the_lenders(loans: pl.DataFrame) -> None:
    table = wide_ratios(
        loans,
        attributes=["race", "sex"],
        intersections=True,
        selected="approved",
        favorable="selected",
    )
    assert row(table, "black", RATIO) == pytest.approx([0.743], abs=CLOSE)
    assert row(table, "hispanic", RATIO) == pytest.approx([0.843], abs=CLOSE)
    ratios = {
        "female": 0.983, "black, female": 0.664, "black, male": 0.758, "white, male": 0.990,
    }  # fmt: skip
    for segment, ratio in ratios.items():
        assert row(table, segment, RATIO) == pytest.approx([ratio], abs=CLOSE)
    rates = {
        "black": 0.675, "hispanic": 0.766, "white": 0.908, "female": 0.864, "male": 0.879,
        "black, female": 0.608, "black, male": 0.694, "hispanic, female": 0.773,
        "white, female": 0.916, "white, male": 0.906,
    }  # fmt: skip
    for segment, rate in rates.items():
        assert row(table, segment, ("value",)) == pytest.approx([rate], abs=CLOSE)
    unknown = table.filter(pl.col("segment").is_null())
    assert unknown["n"].to_list() == [15, 15]


def test_decisions_of_a_threshold(loans: pl.DataFrame) -> None:
    table = wide_ratios(
        loans,
        "score",
        attributes=["race", "sex"],
        intersections=True,
        threshold=0.85,
        favorable="selected",
    )
    assert row(table, "black", RATIO) == pytest.approx([0.689], abs=CLOSE)
    assert row(table, "black", JOINT) == pytest.approx([0.585, 0.791], abs=CLOSE)
    assert row(table, "hispanic", RATIO) == pytest.approx([0.845], abs=CLOSE)
    assert row(table, "male", RATIO) == pytest.approx([0.954], abs=CLOSE)
    assert row(table, "black, female", RATIO) == pytest.approx([0.630], abs=CLOSE)
    assert row(table, "black, male", RATIO) == pytest.approx([0.637], abs=CLOSE)
    small = row(table, "hispanic, female", RATIO)
    assert small == pytest.approx([0.626], abs=CLOSE)
    assert row(table, "white, male", RATIO) == pytest.approx([0.913], abs=CLOSE)
    verdicts = dict(table.drop_nulls("segment").select("segment", "verdict").iter_rows())
    assert verdicts == {
        "black": "below four fifths", "hispanic": "inconclusive", "white": None, "female": None,
        "male": "at least four fifths",
        "black, female": "inconclusive", "black, male": "below four fifths",
        "hispanic, female": None, "hispanic, male": "inconclusive",
        "white, female": None, "white, male": "at least four fifths",
    }  # fmt: skip
    assert set(table.filter(reason="share below 2%")["segment"]) == {"hispanic, female"}
    crossed = table.filter(segment="black, male")
    assert crossed["reference"].item() == "white, female"


def test_scores_above_the_median(loans: pl.DataFrame) -> None:
    table = wide_ratios(
        loans,
        "score",
        attributes=["race", "sex"],
        intersections=True,
        threshold="median",
        favorable="selected",
    )
    expected = {
        "black": (0.198, 0.365, "below four fifths"),
        "hispanic": (0.396, 0.731, "inconclusive"),
        "white": (0.542, 1, None),
        "female": (0.510, 1, None),
        "male": (0.497, 0.975, "at least four fifths"),
        "black, female": (0.216, 0.375, "below four fifths"),
        "black, male": (0.188, 0.327, "below four fifths"),
        "white, female": (0.574, 1, None),
        "white, male": (0.535, 0.931, "at least four fifths"),
    }  # fmt: skip
    for segment, (rate, ratio, verdict) in expected.items():
        found = row(table, segment, ("value", "ratio"))
        assert found == pytest.approx([rate, ratio], abs=CLOSE)
        assert table.filter(segment=segment)["verdict"].to_list() == [verdict]
    above = loans["score"] > float(np.median(loans["score"].to_numpy()))
    of_race = table.filter(attribute="race").select(pl.col("n") * pl.col("value")).to_series()
    assert of_race.sum() == pytest.approx(above.sum())


def test_fairlearn(loans: pl.DataFrame) -> None:
    decided = loans.with_columns(d=pl.col("score") >= 0.85)
    table = wide_ratios(
        loans,
        "score",
        attributes=["race", "sex"],
        intersections=True,
        threshold=0.85,
        favorable="selected",
        min_share=0,
    )
    for attribute, by in (("race", ["race"]), ("sex", ["sex"]), ("×", ["race", "sex"])):  # noqa: RUF001
        known = decided.drop_nulls(by)
        features = known.select(pl.concat_str(by, separator=", ")).to_series().to_numpy()
        d = known["d"].to_numpy()
        expected = demographic_parity_ratio(y_true=d, y_pred=d, sensitive_features=features)
        own = table.filter(pl.col("attribute").str.contains(f"{attribute}$|{attribute} "))
        if len(by) == 1:
            own = own.filter(attribute=by[0])
        assert own["ratio"].min() == pytest.approx(expected)


@pytest.mark.parametrize("by", [["race"], ["sex"], ["race", "sex"]])
@pytest.mark.parametrize("threshold", [0.85, "median"])
def test_aedt_audit(loans: pl.DataFrame, by: list[str], threshold: Any) -> None:
    """The same numbers of applicants, rates, ratios, exclusions and standard deviations."""
    if threshold == "median":
        rates = aedt_audit.scoring_rates(loans.to_pandas(), by=by, score="score")
    else:
        decided = loans.with_columns(d=pl.col("score") >= threshold).to_pandas()
        rates = aedt_audit.selection_rates(decided, by=by, outcome="d")
    expected = pl.from_pandas(aedt_audit.significance(aedt_audit.four_fifths(rates)))
    expected = expected.filter(pl.all_horizontal(pl.col(by) != "unknown"))
    expected = expected.with_columns(segment=pl.concat_str(by, separator=", "))
    crossed: Any = {"intersections": "only"} if len(by) > 1 else {}
    found = wide_ratios(
        loans, "score", attributes=by, threshold=threshold, favorable="selected", **crossed
    ).drop_nulls("segment")
    both = found.join(expected, on="segment", suffix="_expected", validate="1:1")
    assert both.height == found.height == expected.height
    for own, theirs in (("value", "rate"), ("ratio", "impact_ratio")):
        assert both[own].to_list() == pytest.approx(both[theirs].to_list())
    assert (both["n"] == both["n_expected"]).all()
    assert both["excluded"].equals(both["reason"].eq_missing("share below 2%"))
    normal = both.drop_nulls("p_value").filter(pl.col("n") > 100)
    compared = int((~both["excluded"]).sum())
    # The highest was picked.
    assert normal["p_value"].to_list() == pytest.approx(
        [plain_picked.p_value(2 * stats.norm.sf(abs(z)), compared) for z in normal["z_score"]]
    )


def mean_differences(loans: pl.DataFrame) -> pl.DataFrame:
    return wroc.group_gaps(
        loans,
        score="score",
        attributes="race",
        reference="white",
        metrics=["standardized_mean_difference"],
    )


def test_numbers_of_solas(loans: pl.DataFrame) -> None:
    """Those that solas-ai 0.6.0 prints, which needs an older pandas; it multiplies SMDs by 100."""
    table = wide_ratios(loans, "score", attributes="race", threshold=0.85, favorable="selected")
    assert row(table, "black", RATIO) == pytest.approx([0.689155], abs=1e-6)
    assert row(table, "hispanic", RATIO) == pytest.approx([0.845048], abs=1e-6)
    means = mean_differences(loans)
    found = [row(means, race, ("gap",))[0] for race in ("black", "hispanic")]
    assert found == pytest.approx([-0.81878832, -0.32601715])


def test_standardized_differences(loans: pl.DataFrame) -> None:
    table = mean_differences(loans)
    found = row(table, "black", ("gap", "gap_low", "gap_high"))
    assert found == pytest.approx([-0.819, -1.020, -0.617], abs=CLOSE)
    assert row(table, "hispanic", ("gap",)) == pytest.approx([-0.326], abs=CLOSE)
