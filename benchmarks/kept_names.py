"""Names that changed since tables were kept: columns, metrics and verdicts."""

from __future__ import annotations

from fnmatch import fnmatchcase

import polars as pl

_COMPARE = {
    "model_a": "model",
    "model_b": "reference",
    "auc_a": "value",
    "auc_b": "reference_value",
    "difference": "gap",
    "difference_se": "gap_se",
    "difference_low": "gap_low",
    "difference_high": "gap_high",
}
_ENDS = ("", "_low", "_high")
_ERROR = "mean_calibration_error"
# By patterns of calls.
_COLUMNS: dict[str, dict[str, str]] = {
    "compare *": _COMPARE,
    "calibration_curve *": {f"difference{end}": f"{_ERROR}{end}" for end in _ENDS},
    "calibration_test *": {f"miscalibration{end}": f"{_ERROR}{end}" for end in _ENDS},
    "brier_score *": {"v.brier_score": "v"},
    "*": {f"calibration_in_the_large{end}": f"{_ERROR}{end}" for end in _ENDS},
}
# The parts of the Brier score are columns of `calibration_summary`; z is gap / gap_se.
_MOVED: dict[str, list[str]] = {
    "brier_score *": [
        f"v.{part}"
        for part in (
            "reliability",
            "resolution",
            "uncertainty",
            "miscalibration",
            "discrimination",
        )
    ],
    "compare *": ["z"],
}
_WORDS: dict[str, dict[str, str]] = {
    "verdict": {"alike": "equivalent", "too little data": "inconclusive"},
    "metric": {"calibration_in_the_large": _ERROR},
    "measure": {"calibration_in_the_large": _ERROR},
}
_IMPACT = {"different": "below four fifths", "equivalent": "at least four fifths"}
_ENDS_OF_VALUE = ("", "_low", "_high")
# Rates of `impact_ratios`, which were the values of the ratios' rows.
_RATES = {"rejected": "favorable_rate", "selected": "selection_rate"}
_ONLY_OF_RATIOS = ("ratio", "ratio_low", "ratio_high", "p_value", "p_adjusted", "verdict")


def translate(kept: pl.DataFrame, call: str, text: str) -> pl.DataFrame:
    """Return a table that was kept, by a call with a name and a text, as it is made now."""
    for pattern, columns in _COLUMNS.items():
        if fnmatchcase(call, pattern):
            kept = kept.rename(columns, strict=False)
    for pattern, names in _MOVED.items():
        if fnmatchcase(call, pattern):
            kept = kept.drop(names, strict=False)
    for column, words in _WORDS.items():
        if column in kept.columns and kept.schema[column] == pl.String:
            kept = kept.with_columns(pl.col(column).replace(words))
    if {"metric", "verdict"} <= set(kept.columns):
        is_ratio = pl.col("metric") == "impact_ratio"
        verdict = pl.col("verdict")
        kept = kept.with_columns(
            pl.when(is_ratio).then(verdict.replace(_IMPACT)).otherwise(verdict)
        )
    if {"metric", "ratio_low"} <= set(kept.columns):
        side = "rejected" if 'favorable="rejected"' in text else "selected"
        rates = _rates_of_impact_ratios(kept, side) if fnmatchcase(call, "impact_ratios *") else []
        kept = pl.concat([*rates, _with_ratios_as_values(kept)])
    return kept


def _with_ratios_as_values(kept: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose impact ratios are their values; these were the rates."""
    is_ratio = pl.col("metric") == "impact_ratio"
    values = {f"value{end}": pl.col(f"ratio{end}") for end in _ENDS_OF_VALUE}
    values["reference_value"] = pl.when(pl.col("ratio").is_not_null()).then(1.0)
    return kept.with_columns(
        pl.when(is_ratio).then(value).otherwise(pl.col(name)).alias(name)
        for name, value in values.items()
    )


def _rates_of_impact_ratios(kept: pl.DataFrame, side: str) -> list[pl.DataFrame]:
    """Return the rows of the rates, which are apart from the ratios now."""
    rates = kept.with_columns(pl.lit(_RATES[side]).alias("metric"))
    nothing = [pl.lit(None, dtype=kept.schema[name]).alias(name) for name in _ONLY_OF_RATIOS]
    return [rates.with_columns(nothing)]
