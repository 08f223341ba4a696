# ruff: noqa: RUF001  (texts as they are printed)
"""Tables as people read them, from every public function that makes one, and others."""

from __future__ import annotations

import datetime as dt
import inspect
import os
import random
import re
from pathlib import Path
from unittest import mock

import polars as pl
import printed_tables
import pytest
from chromium import Chromium
from printed_tables import TABLES, table

import polars_wroc as wroc
from polars_wroc.documents.table_layout import lay_out_columns
from polars_wroc.documents.text_writer import text_width


def lines_of(table: object, width: int = 200, rows: int | None = 40) -> list[str]:
    """Show a table in a terminal of a width."""
    with mock.patch.dict(os.environ, COLUMNS=str(width)):
        return repr(wroc.show(table, rows=rows)).splitlines()


@pytest.mark.parametrize("file", printed_tables.PRINTED)
def test_printed_tables_are_those_of_the_files(file: str) -> None:
    text = (printed_tables.FOLDER / file).read_text(encoding="utf-8")
    assert printed_tables.PRINTED[file]() == text, "python tools/renew.py printed renews it"


def test_every_function_that_makes_a_table_is_shown() -> None:
    functions = {
        name
        for name in wroc.__all__
        if inspect.isfunction(one := getattr(wroc, name))
        and inspect.signature(one).return_annotation in ("FrameT", "pl.DataFrame")
    }
    # These make columns of rows, counts of other counts, and a result of its own.
    others = {"at_horizon", "merge_counts", "audit_changes"}
    assert functions - others == {
        name.split()[0] for name in TABLES if name.split()[0] in functions
    }


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("width", [20, 60, 80, 100, 160])
def test_tables_fit_the_terminal(name: str, width: int) -> None:
    lines = lines_of(table(name), width)
    assert max(map(text_width, lines)) <= width
    count = f"{table(name).height:,} row"
    assert re.search(count, "\n".join(lines))


@pytest.mark.parametrize("name", TABLES)
def test_notebooks_show_every_row(name: str) -> None:
    shown = table(name)
    html = wroc.show(shown, rows=None)._repr_html_()
    rows = html.count('<th scope="row"')
    # The rates that impact ratios divide are beside them.
    assert rows == (shown.height // 2 if name == "impact_ratios" else shown.height)
    assert html.startswith('<div class="wroc"><style>')


@pytest.fixture
def gaps() -> pl.DataFrame:
    return table("group_gaps in one metric")


def test_gaps_are_in_points_below_their_attribute(gaps: pl.DataFrame) -> None:
    black = gaps.row(0, named=True)
    value, low, high = (100 * black[name] for name in ("value", "value_low", "value_high"))
    heading, attribute, line = lines_of(gaps)[:3]
    assert re.split(" {2,}", heading) == (
        ["group", "n", "selection rate", "others", "difference, points", "result", "p, adjusted"]
    )
    assert attribute == "race"
    own = f"{value:.1f}% ({low:.1f} to {high:.1f})"
    found = ["", "black", "197", own, "80.2%", "−24.4 (−31.6 to −17.4)", "different", "<0.001"]
    assert re.split(" {2,}", line) == found
    assert lines_of(gaps)[-1] == "6 rows; 22 columns in the frame"


def test_a_gap_of_no_share_is_in_its_own_unit() -> None:
    text = "\n".join(lines_of(table("group_gaps")))
    assert "−0.036 (−0.132 to +0.051)" in text
    assert "−24.4 points (−31.6 to −17.4)" in text


def test_an_impact_ratio_is_beside_the_rates_that_it_divides() -> None:
    header, _, black = lines_of(table("impact_ratios"))[:3]
    assert header.split("  ")[0] == "group"
    found = "55.8% (48.9 to 62.6)   81.0% (white)  0.69 (0.59 to 0.79)  below four fifths"
    assert found in black


def test_a_fairness_criterion_has_the_number_that_it_is_named_for() -> None:
    lines = lines_of(table("fairness"))
    assert lines[1].endswith("+25.2 points (+16.8 to +33.8)       81.0%  55.8% (black)  <0.001")
    assert lines[2].endswith("0.69 (0.59 to 0.79)       55.8%  81.0% (white)  <0.001")


def test_both_scores_of_a_comparison_are_named() -> None:
    assert lines_of(table("compare"))[0].split("  ")[:2] == ["score", "other score"]
    assert lines_of(table("release_check"))[1].split()[3:5] == ["new", "score"]


def test_columns_that_say_nothing_are_left_out(gaps: pl.DataFrame) -> None:
    heading = lines_of(gaps)[0]
    for name in ("model", "metric", "detectable", "reason", "n_reference", "ratio"):
        assert name.replace("_", " ") not in heading
    missing = table("summary").with_columns(n_missing=pl.lit(3, pl.Int64))
    assert "missing" in lines_of(missing)[1]
    assert "missing" not in lines_of(table("summary"))[1]


# The cells of the first row at a width: what goes first are the limits of the value, then the rows,
# the p-value and the value of the others; the difference with its limits and the result stay.
DIFFERENCE = "−24.4 (−31.6 to −17.4)"
NARROW = {
    160: ["black", "197", "55.8% (48.9 to 62.6)", "80.2%", DIFFERENCE, "different", "<0.001"],
    90: ["black", "197", "55.8%", "80.2%", DIFFERENCE, "different", "<0.001"],
    83: ["black", "55.8%", "80.2%", DIFFERENCE, "different", "<0.001"],
    80: ["black", "197", "55.8%", "80.2%", DIFFERENCE, "different"],
    68: ["black", "55.8%", "80.2%", DIFFERENCE, "different"],
    63: ["black", "55.8%", DIFFERENCE, "different"],
    50: ["black", DIFFERENCE, "different"],
    34: ["black", "−24.4", "different"],
}


@pytest.mark.parametrize("width", NARROW)
def test_a_narrow_terminal_keeps_the_difference_and_the_result(
    gaps: pl.DataFrame, width: int
) -> None:
    black = next(line for line in lines_of(gaps, width) if "black" in line)
    assert re.split(" {2,}", black.strip()) == NARROW[width]


# Several metrics have names and units that need room: the result goes so that limits stay; where
# there is no room for these either, the result is back.
NARROW_METRICS = {
    70: ["−24.4 points (−31.6 to −17.4)", "different"],
    60: ["−24.4 points (−31.6 to −17.4)"],
    50: ["−24.4 points", "different"],
}


@pytest.mark.parametrize("width", NARROW_METRICS)
def test_a_narrow_terminal_keeps_the_limits_of_gaps_in_several_metrics(width: int) -> None:
    rate = next(line for line in lines_of(table("group_gaps"), width) if " selec" in line)
    assert re.split(" {2,}", rate.strip())[1:] == NARROW_METRICS[width]


def test_criteria_that_compare_nothing_have_a_column_of_values() -> None:
    one = wroc.data.loans().filter(race="white")
    compared = wroc.fairness(one, "approved", "score", attributes="race", threshold=0.5)
    heading, first, *_ = lines_of(compared)
    assert heading.split() == ["attribute", "metric", "value"]
    assert re.split(" {2,}", first) == ["race", "demographic parity difference", "–"]


FOUND = re.compile(r"  (different|worse|better|below four fifths)( |$)")
COMPARISONS = (
    *("compare", "group_gaps", "group_gaps in one metric", "impact_ratios", "release_check"),
    *("trend", "worst_segments"),
)


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("width", [80, 100, 160])
def test_what_is_found_has_its_limits(name: str, width: int) -> None:
    found = [line for line in lines_of(table(name), width) if FOUND.search(line)]
    n_found = table(name)["verdict"].is_in(["different", "worse", "better", "below four fifths"])
    assert len(found) == n_found.sum()
    for line in found:
        assert re.search(r"\d( points)? \([+−\d].*\d to .*\d\) ", line), line


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_an_audit_shows_its_impact_ratios(width: int) -> None:
    lines = lines_of(table("audit.table"), width, rows=None)
    (place,) = [place for place, line in enumerate(lines) if re.search("0.69 .* below four", line)]
    # A narrow terminal has the last word on the next line.
    assert "fifths" in " ".join(lines[place : place + 2])


def test_both_groups_of_a_fairness_criterion_are_named() -> None:
    for width in (60, 80, 100, 160):
        lines = lines_of(table("fairness"), width)
        assert re.split(" {2,}", lines[1])[0] == "white"
        assert lines[1].endswith("81.0%  55.8% (black)" + "  <0.001" * (width == 160))
    assert "(+16.8 to +33.8)" in lines_of(table("fairness"), 100)[1]


def test_long_names_of_both_groups_are_cut_and_their_values_are_not() -> None:
    names = {"black": "b" * 40, "white": "w" * 40}
    groups = [pl.col(name).replace(names) for name in ("segment", "reference")]
    lines = lines_of(table("fairness").with_columns(groups), 70)
    assert max(map(text_width, lines)) <= 70
    assert re.match("w+…w+ ", lines[1])
    assert re.search(r" 81\.0%  55\.8% \(b+…b+\)$", lines[1])


def test_names_are_cut_no_more_than_is_needed() -> None:
    for width in range(60, 100):
        lines = lines_of(table("group_gaps"), width)
        if any("…" in line for line in lines):
            assert max(map(text_width, lines[:38])) == width


def test_a_fairness_criterion_alone_has_points() -> None:
    alone = table("fairness").filter(metric="demographic_parity_difference")
    lines = lines_of(alone, 80)
    assert "difference, points" in lines[1]
    assert "+25.2 (+16.8 to +33.8)" in lines[2]


def test_equalized_odds_name_the_rate_that_decides() -> None:
    text = "\n".join(lines_of(table("fairness"), 80))
    assert "equalized odds difference (tpr)" in text
    assert "equalized odds ratio (fpr)" in text
    # Without the rows of both rates nothing tells which one it is.
    alone = table("fairness").filter(metric="equalized_odds_ratio")
    assert "fpr" not in "\n".join(lines_of(alone))


def test_a_criterion_that_compares_nothing_has_a_reason_and_no_group() -> None:
    nobody = wroc.fairness(
        printed_tables.LOANS, "approved", "score", attributes="race", threshold=85
    )
    lines = lines_of(nobody, 80)
    assert "(missing)" not in "\n".join(lines)
    first = next(line for line in lines if "demographic parity difference" in line)
    assert first.split()[0] == "–"
    assert "Nobody is selected: 8 rows." in lines
    parity = nobody.filter(metric="demographic_parity_ratio")
    assert "Nobody is selected." in lines_of(parity, 80)


def test_long_reasons_are_below_the_table(gaps: pl.DataFrame) -> None:
    reason = "a reason that is much longer than any verdict, and so has no room in the column"
    missing = pl.col("segment").is_null()
    why = pl.when(missing).then(pl.lit(reason)).otherwise("reason").alias("reason")
    null = {"verdict": pl.when(~missing).then("verdict")}
    lines = lines_of(gaps.with_columns(why, **null), 80)
    usual = lines_of(gaps, 80)
    assert lines[:4] == usual[:4]
    assert " ".join(lines[-4:-2]) == f"{reason.capitalize()}: sex (missing)."
    html = wroc.show(gaps.with_columns(why, **null))._repr_html_()
    assert f"{reason.capitalize()}: sex (missing)." in html


def test_short_reasons_are_results() -> None:
    lines = lines_of(table("trend"), 80)
    assert lines[1].endswith("the first period")
    assert "The first period" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (printed_tables.LOANS.filter(approved=True), "rows of one class only"),
        (printed_tables.LOANS.head(0), "no rows"),
    ],
)
def test_metrics_that_are_undefined_are_named(rows: pl.DataFrame, why: str) -> None:
    lines = lines_of(wroc.summary(rows, "approved", "score"), 80)
    assert lines[2] == f"AUC, average precision, KS: undefined, {why}."
    assert not any("undefined" in line for line in lines_of(table("summary")))


def test_rows_of_one_metric_are_headed_by_their_kind() -> None:
    everything = table("group_gaps")
    kinds = {"tpr": "positives", "fpr": "negatives", "ppv": "selected", "npv": "rejected"}
    for metric, kind in {**kinds, "auc": "n", "selection_rate": "n"}.items():
        text = "\n".join(lines_of(everything.filter(metric=metric))[:5])
        assert re.search(rf"group +{kind} ", text), metric
    assert re.search("metric +n ", lines_of(everything)[0])


def test_validation_has_the_usual_labels() -> None:
    names = ["ici", "e50", "e90", "oe_ratio", "scaled_brier"]
    column = pl.DataFrame({"measure": names, "value": [0.5] * 5})
    found = [line.rpartition("  ")[0].strip() for line in lines_of(column)[1:6]]
    assert found == ["ICI", "E50", "E90", "O:E", "scaled Brier score"]


def test_a_script_is_told_to_print() -> None:
    assert "In a script, ``print(wroc.show(table))``." in (wroc.show.__doc__ or "")


def test_texts_are_cut_before_a_table_is_too_wide() -> None:
    wide = pl.DataFrame({"name": ["x" * 90], "value": [0.5], "why": ["y" * 90], "w" * 90: [1.5]})
    for width in (12, 30, 60):
        assert max(map(text_width, lines_of(wide, width))) <= width


def test_intervals_go_before_estimates_do() -> None:
    lines = lines_of(table("threshold_metrics"), 100)
    assert lines[4].split() == (
        ["black", "0.5", "87.8%", "94.7%", "73.4%", "72.8%", "70.8%", "72.6%", "0.824"]
    )
    assert "more intervals and 5 more columns" in lines[-1]


def test_the_first_rows_of_many() -> None:
    curve = table("pr_curve")
    lines = lines_of(curve, rows=3)
    assert len(lines) == 5
    assert lines[-1] == "1,989 rows, the first 3 shown; 7 columns in the frame"
    assert len(lines_of(curve, rows=None)) == curve.height + 2


def test_counts_have_no_decimals_and_years_no_commas() -> None:
    years = pl.DataFrame({"year": [2019, 2020], "w_pos": [1234.0, 1.0], "auc": [0.5, None]})
    assert lines_of(years)[2:4] == ["2019      1,234  0.500", "2020          1      –"]
    laid_out = lay_out_columns(years, ["year"])
    assert [(row.name, row.cells[0].text) for row in laid_out.rows] == [
        ("2019", "1,234"),
        ("2020", "1"),
    ]


def test_numbers_before_a_result_are_shown_once() -> None:
    names = ["g", "value", "ratio", "p_value", "p_adjusted", "verdict"]
    row = pl.DataFrame([["a", 1.5, 0.9, 0.25, 0.5, "different"]], names, orient="row")
    headings, values = lines_of(row.drop("p_adjusted"))[:2]
    assert headings.split() == ["g", "value", "ratio", "result", "p"]
    assert values.split() == ["a", "1.500", "0.90", "different", "0.250"]
    assert re.split(" {2,}", lines_of(row)[0])[2:] == ["ratio", "result", "p, adjusted"]


@pytest.mark.parametrize(
    "name", ["z", "rank", "depth", "direction", "reason", "critical", "ci_method", "tree_se"]
)
@pytest.mark.parametrize("value", [2.5, "north"])
def test_columns_of_other_tables_are_shown(name: str, value: object) -> None:
    other = pl.DataFrame({"site": ["a"], "height": [1.5], name: [value], "verdict": ["good"]})
    headings, values = lines_of(other)[:2]
    assert name.replace("_", " ") in re.split(" {2,}", headings)
    assert str(value) in values
    assert len(lines_of(other)) == 3


def test_a_comparison_without_its_verdicts_hides_the_same_columns(gaps: pl.DataFrame) -> None:
    usual, short = (re.split(" {2,}", lines_of(one)[0]) for one in (gaps, gaps.drop("verdict")))
    assert short == [heading for heading in usual if heading != "result"]


def test_rows_without_an_attribute_have_a_heading_of_their_own() -> None:
    attributes = ["race", "race", None, None, "sex"]
    groups = pl.DataFrame({"attribute": attributes, "segment": [*"abcde"], "auc": [0.5] * 5})
    names = [line.split()[0] for line in lines_of(groups)[1:-1]]
    assert names == ["race", "a", "b", "(missing)", "c", "d", "sex", "e"]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (["overall", "race", "sex"], ["everyone", "race", "a", "sex", "b"]),
        (["race", "sex", "overall"], ["race", "a", "sex", "b", "overall", "everyone"]),
    ],
)
def test_everyone_is_below_no_attribute(attributes: list[str], expected: list[str]) -> None:
    segments = {"overall": "overall", "race": "a", "sex": "b"}
    groups = pl.DataFrame(
        {"attribute": attributes, "segment": [segments[name] for name in attributes], "auc": 0.5}
    )
    assert [line.split()[0] for line in lines_of(groups)[1:-1]] == expected


@pytest.mark.parametrize("name", ["direction", "n_region", "rank", "segment", "depth"])
def test_groups_may_have_any_name(name: str) -> None:
    renamed = table("threshold_metrics").rename({"race": name})
    lines = lines_of(renamed)
    assert lines[-2].split()[:2] == ["white", "0.5"]
    assert re.split(" {2,}", lines[2])[0] == name


def test_whole_numbers_that_name_groups_come_first() -> None:
    renamed = table("summary").with_columns(sex=pl.col("n") * 10).rename({"sex": "n_children"})
    lines = lines_of(renamed)
    assert lines[2].split()[:3] == ["2350", "score", "235"]


def test_other_tables_and_methods() -> None:
    lazy = printed_tables.LOANS.lazy()
    expected = lines_of(printed_tables.LOANS, rows=2)
    with mock.patch.dict(os.environ, COLUMNS="200"):
        assert repr(lazy.wroc.show(rows=2)).splitlines() == expected  # type: ignore[attr-defined]
        shown = printed_tables.LOANS.wroc.show(rows=2)  # type: ignore[attr-defined]
        assert repr(shown).splitlines() == expected
    assert lines_of(printed_tables.LOANS.to_arrow(), rows=2) == expected


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(TypeError, match="`table` must be a Polars DataFrame or LazyFrame"):
        wroc.show([1, 2])


NAMES = (
    *table("release_check").columns,
    *("mean_score", "observed_rate", "score_min", "score_max", "measure", "bin", "bin_low"),
    *("bin_high", "n_pos", "n_missing", "from_score", "to_score", "tpr", ""),
)
VALUES: tuple[object, ...] = (
    *(1, -1.5, float("nan"), float("inf"), 1e300, "x", "", None, True, [1], [], {"a": 1}),
    *(dt.date(2020, 1, 1), dt.timedelta(1), b"\xff", object(), "auc", "impact_ratio"),
)


@pytest.mark.parametrize("seed", range(100))
def test_tables_of_any_columns_are_shown(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311  (no secret)
    columns = []
    for name in draw.sample(NAMES, draw.randint(0, 7)):
        value = draw.choice(VALUES)
        dtype = pl.Object if type(value) is object else None
        columns.append(pl.Series(name, [value, None, value][: draw.choice([3, 3, 0])], dtype))
    height = min(map(len, columns), default=0)
    drawn = pl.DataFrame([column[:height] for column in columns])
    assert f"{height} row" in "\n".join(lines_of(drawn))
    assert wroc.show(drawn)._repr_html_()


def test_gaps_of_an_unknown_metric_are_not_called_points(gaps: pl.DataFrame) -> None:
    text = "\n".join(lines_of(gaps.drop("metric")))
    assert "difference" in text
    assert "points" not in text


@pytest.mark.browser
@pytest.mark.parametrize(
    ("variables", "ink"),
    [
        ("", "rgb(28, 30, 33)"),
        ("--jp-content-font-color1: rgb(250, 250, 250)", "rgb(250, 250, 250)"),
        ("--vscode-editor-foreground: rgb(200, 200, 200)", "rgb(200, 200, 200)"),
    ],
)
def test_notebooks_give_their_colors(
    chromium: Chromium, gaps: pl.DataFrame, tmp_path: Path, variables: str, ink: str
) -> None:
    path = tmp_path / "notebook.html"
    html = wroc.show(gaps)._repr_html_()
    path.write_text(f"<style>:root{{{variables}}}</style>{html}", encoding="utf-8")
    chromium.show(path, until="document.querySelector('.wroc tbody th') !== null")
    color = "getComputedStyle(document.querySelector('.wroc tbody th')).color"
    assert chromium.evaluate(color) == ink
