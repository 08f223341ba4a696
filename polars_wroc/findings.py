"""What an audit found, in plain sentences that are made of its numbers."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.rows import MODEL, OVERALL

GapMetric: TypeAlias = Literal["auc", "selection_rate", "tpr", "fpr", "ppv", "npv"]
NAMES: dict[GapMetric, str] = {
    "auc": "AUC",
    "selection_rate": "share selected",
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "ppv": "precision",
    "npv": "negative predictive value",
}
REFERENCES = {"rest": "the rest", "overall": "everybody", "best": "the best segment"}
ADJUSTED = {
    "holm": "p-values adjusted for their number by Holm's method",
    "bh": "p-values adjusted for their number by Benjamini and Hochberg's method",
    "none": "p-values not adjusted for their number",
}
_PARTS = ("gap", "gap_low", "gap_high", "gap_p_value", "gap_p_adjusted")
# So many sentences, and names in one of them, are read at a glance.
_SENTENCES, _LISTED = 8, 5
# Of more attributes than this only the one with the widest range of AUCs is named.
_RANGES = 3
# Below this a p-value is not written out.
_LEAST_P = 0.001


class Finding(NamedTuple):
    """A sentence about a gap, and whether the gap is more than chance."""

    text: str
    found: bool


def verdict(gaps: pl.DataFrame, settings: dict[str, Any]) -> str:
    """Say how many gaps are more than chance, of how many there were to look at."""
    tested = _tests(gaps).filter(pl.col("gap_p_value").is_not_null())
    if tested.is_empty():
        return (
            "Nothing could be compared: no segment has enough rows of both classes, and something "
            "to tell it from the others by, to test a gap."
        )
    reference = REFERENCES[settings["reference"]]
    several = tested.height > 1
    looked = f"{_many(tested.height, 'comparison')} of a segment with {reference}"
    how = f"at a level of {1 - settings['level']:.2g}, with {ADJUSTED[settings['adjust']]}"
    found = tested.filter(_found(settings)).height
    if not found:
        none = f"none of {looked} is" if several else f"the one {looked[2:]} is not"
        return (
            f"No gap is more than chance: {none} significant {how}. That does not show that there "
            "is none: each interval says how large a gap may be."
        )
    finds = "finds" if found == 1 else "find"
    return f"{found:,} of {looked} {finds} a gap that is more than chance, {how}."


def gap_findings(gaps: pl.DataFrame, settings: dict[str, Any]) -> list[Finding]:
    """Say of each attribute (and score) where it has its largest gaps: in AUC, and in decisions.

    Gaps that are more than chance come before larger ones that may be chance; what could not be
    tested is left out. Of many sentences the first few such are kept.
    """
    tests = _tests(gaps).filter(pl.col("gap_p_value").is_not_null())
    found = _found(settings).fill_null(value=False)
    ranked = tests.with_columns(
        found=found, decides=pl.col("rate") != "auc", size=pl.col("gap").abs()
    ).sort("found", "size", descending=True, maintain_order=True)
    kind = [name for name in ("attribute", MODEL) if name in tests.columns]
    # In the order in which the page has its sections.
    places = gaps.select(kind).unique(maintain_order=True).with_row_index("place")
    largest = ranked.unique([*kind, "decides"], keep="first", maintain_order=True)
    kept = largest.head(_SENTENCES).join(places, on=kind, how="left").sort("place", "decides")
    return [
        Finding(_sentence(one, settings), found=one["found"]) for one in kept.iter_rows(named=True)
    ]


def untested_findings(
    segments: pl.DataFrame, gaps: pl.DataFrame, settings: dict[str, Any]
) -> list[str]:
    """Say which segments were measured but not tested, and which attributes have no test."""
    found = []
    small = small_segments(segments)
    if not small.is_empty():
        found.append(
            f"{_many(small.height, 'segment')} {'has' if small.height == 1 else 'have'} too few "
            f"rows to be tested, fewer than {settings['min_rows']} in a class: {_listed(small)}"
        )
    one_class = one_class_segments(segments)
    if not one_class.is_empty():
        found.append(
            f"{_many(one_class.height, 'segment')} {'has' if one_class.height == 1 else 'have'} "
            f"rows of one class only, so that there is no AUC: {_listed(one_class)}"
        )
    tests = _tests(gaps)
    nothing = tests.group_by("attribute", maintain_order=True).agg(pl.col("gap_p_value").count())
    untested = nothing.filter(gap_p_value=0)["attribute"].to_list()
    # Where there is no test at all the verdict says so.
    if untested and len(untested) < nothing.height:
        found.append(f"Nothing could be tested by {', '.join(untested)}.")
    return found


def score_findings(segments: pl.DataFrame) -> list[str]:
    """Say how well each score ranks everybody, and how far its segments are apart."""
    found = []
    for of_model in _models(segments):
        everybody = of_model.row(0, named=True)
        name = f"The score{_quoted(everybody.get(MODEL))}"
        if everybody["auc"] is None:
            found.append(f"{name} has no AUC: the rows are all of one class.")
            continue
        weighted = any(everybody[f"n_{side}"] != everybody[f"w_{side}"] for side in ("pos", "neg"))
        share = f"{everybody['auc']:.1%}{' of the weight' * weighted}"
        found.append(
            f"{name} has an AUC of {_auc(everybody)}: of the pairs of a positive and a negative, "
            f"it ranks {share} correctly, a tie as half."
        )
        if everybody["inverted"]:
            found.append(f"{name} ranks the wrong way around: its whole interval is below 0.5.")
        ranges = [
            one
            for of_attribute in _parts(of_model, "attribute")
            if of_attribute["attribute"][0] != OVERALL and (one := _range(of_attribute))
        ]
        if len(ranges) > _RANGES:
            ranges = [max(ranges, key=lambda one: one.width)]
        found += [one.text for one in ranges]
    return found


def missing_finding(missing: pl.DataFrame) -> str | None:
    """Say in which columns values are missing, and in how many rows."""
    some = missing.filter(pl.col("n_missing") > 0)
    if some.is_empty():
        return None
    listed = [f"{name} in {_many(rows, 'row')}" for name, rows in some.iter_rows()]
    return f"Values are missing: {', '.join(listed)}."


def small_segments(segments: pl.DataFrame) -> pl.DataFrame:
    """Segments, but for everybody, with too few rows in a class of some score to be tested."""
    both = pl.min_horizontal("n_pos", "n_neg") > 0
    return _distinct(segments.filter(pl.col("small"), both))


def one_class_segments(segments: pl.DataFrame) -> pl.DataFrame:
    """Segments, but for everybody, that lack a class for some score."""
    return _distinct(segments.filter(pl.min_horizontal("n_pos", "n_neg") == 0))


def name_of(segment: str | None) -> str:
    """Name a segment; a null is one too."""
    return "(missing)" if segment is None else segment


def _distinct(segments: pl.DataFrame) -> pl.DataFrame:
    others = segments.filter(pl.col("attribute") != OVERALL)
    return others.select("attribute", "segment").unique(maintain_order=True)


def _listed(segments: pl.DataFrame) -> str:
    names = [f"{attribute} {name_of(segment)}" for attribute, segment in segments.rows()]
    more = len(names) - _LISTED
    return f"{', '.join(names[:_LISTED])}{f' and {more:,} more' if more > 0 else ''}."


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _found(settings: dict[str, Any]) -> pl.Expr:
    level: float = settings["level"]
    return pl.col("gap_p_adjusted") <= 1 - level


def _tests(gaps: pl.DataFrame) -> pl.DataFrame:
    """One row per test of the table."""
    keys = [name for name in ("attribute", "segment", MODEL) if name in gaps.columns]
    return pl.concat(
        gaps.select(*keys, pl.lit(rate).alias("rate"), **{p: f"{rate}_{p}" for p in _PARTS})
        for rate in NAMES
        if f"{rate}_gap" in gaps.columns
    )


def _sentence(test: dict[str, Any], settings: dict[str, Any]) -> str:
    model = f", with the score{_quoted(test[MODEL])}" if MODEL in test else ""
    found = " that is more than chance" if test["found"] else ""
    what = (
        f"gap in decisions{found} is in the {NAMES[test['rate']]} of"
        if test["decides"]
        else f"gap in AUC{found} is in"
    )
    ends = " to ".join(_side(test[end]) for end in ("gap_low", "gap_high"))
    p = test["gap_p_adjusted"]
    p_value = "p" if settings["adjust"] == "none" else "adjusted p"
    return (
        f"By {test['attribute']}{model}, the largest {what} {name_of(test['segment'])}: "
        f"{_side(test['gap'])} than in {REFERENCES[settings['reference']]} "
        f"({100 * settings['level']:g}% interval: {ends}; "
        f"{p_value} {f'below {_LEAST_P}' if p < _LEAST_P else f'= {p:.3f}'})."
        f"{'' if test['found'] else ' It may be chance.'}"
    )


def _side(gap: float) -> str:
    return f"{abs(gap):.3f} {'higher' if gap > 0 else 'lower'}"


def _quoted(model: str | None) -> str:
    left, right = "\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"
    return "" if model is None else f" {left}{model}{right}"


def _models(segments: pl.DataFrame) -> list[pl.DataFrame]:
    return _parts(segments, MODEL) if MODEL in segments.columns else [segments]


def _parts(table: pl.DataFrame, key: str) -> list[pl.DataFrame]:
    return table.partition_by(key, maintain_order=True)


class _Range(NamedTuple):
    text: str
    width: float


def _range(segments: pl.DataFrame) -> _Range | None:
    ranked = segments.drop_nulls("auc").sort("auc").to_dicts()
    if len(ranked) < 2:  # noqa: PLR2004  (a range needs two)
        return None
    low, high = ranked[0], ranked[-1]
    text = (
        f"By {low['attribute']}, its AUC runs from {_auc(low)} in {_sized(low)}, to "
        f"{_auc(high)} in {_sized(high)}."
    )
    return _Range(text, high["auc"] - low["auc"])


def _sized(segment: dict[str, Any]) -> str:
    return f"{name_of(segment['segment'])} ({_many(segment['n'], 'row')})"


def _auc(segment: dict[str, Any]) -> str:
    low, high = segment["ci_low"], segment["ci_high"]
    limits = "" if low is None else f" ({low:.3f} to {high:.3f})"
    return f"{segment['auc']:.3f}{limits}"
