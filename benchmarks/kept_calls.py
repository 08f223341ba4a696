"""The calls whose numbers `kept_numbers.py` keeps and checks, and their data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import kept_shapes
import numpy as np
import polars as pl

import polars_wroc as wroc

_DATA = Path(__file__).parents[1] / "polars_wroc" / "data"


@dataclass(frozen=True)
class Call:
    """A call as text, in the old spelling and, if it changed, in the new one.

    ``shape`` brings the new table into the shape of the old one.
    """

    old: str
    new: str | None = None
    shape: Callable[[pl.DataFrame], pl.DataFrame] | None = None

    @property
    def now(self) -> str:
        """The new text, with arguments that have new names everywhere."""
        text = self.new or self.old
        for old, new in _ARGUMENTS.items():
            text = text.replace(old, new)
        if "wroc.audit" in text:
            text = text.replace("by=", "attributes=")
        text = text.replace(".audit(by=", ".audit(attributes=")
        for name in ("threshold_metrics", "operating_points", "confusion_matrix"):
            every = f'partial(wroc.{name}, metrics="all", level=None)('
            text = text.replace(f"wroc.{name}(", every)
        if "confusion_matrix" in text:
            text = text.replace("rule=", "threshold=")
        return text


def _made(rows: int, seed: int, *, digits: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    positive = rng.random(rows) < 0.4
    score = 1 / (1 + np.exp(-rng.normal(size=rows) - positive))
    return pl.DataFrame(
        {
            "y": positive,
            "s": score.round(digits),
            "t": np.clip(score + rng.normal(size=rows) / 10, 0.001, 0.999),
            "g": rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
            "h": rng.choice(["u", "v"], rows),
            "w": rng.lognormal(size=rows),
            "n": rng.integers(1, 4, rows),
            "d": rng.random(rows) < score,
            "unit": rng.integers(0, 40, rows),
        }
    )


def _data() -> dict[str, pl.DataFrame]:
    """Eight data sets by name."""
    rng = np.random.default_rng(30)
    plain = _made(900, 1)
    return {
        "loans": pl.read_parquet(_DATA / "loans.parquet"),
        "diabetes": pl.read_parquet(_DATA / "diabetes.parquet"),
        "made": plain,
        "ties": _made(600, 2, digits=1).with_columns(w=pl.col("w").round(1)),
        "missing": plain.with_columns(
            pl.when(pl.Series(rng.random(900) > 0.1)).then(name).alias(name) for name in "ysgw"
        ),
        "one_class": _made(300, 3).with_columns(y=pl.col("y") & (pl.col("g") != "c")),
        "extreme": _made(400, 4).with_columns(w=10.0 ** pl.Series(rng.uniform(-200, 200, 400))),
        "survey": _made(800, 5).with_columns(
            stratum=pl.col("unit") % 10, psu=pl.col("unit") // 10, w=pl.col("w").clip(0.2, 5)
        ),
    }


DATA = _data()
_SURVEY = 'cluster="psu", strata="stratum"'
_ARGUMENTS = {
    "wroc.partial_aucs(": "wroc.partial_auc_summary(",
    "wroc.summary(": "partial(wroc.summary, diagnostics=True)(",
    ").summary(": ").summary(diagnostics=True, ",
    "calibration_error(": "calibration_summary(",
    "calibration_slope(": "calibration_summary(",
    _SURVEY: 'design=wroc.Survey("psu", strata="stratum")',
    "tpr_at_fpr(": "roc_point(",
    "fpr_at_tpr(": "roc_point(",
    'cluster="unit"': 'design="unit"',
    'weight="n", weight_type="frequency"': 'weight=wroc.frequency("n")',
    'criterion="youden"': "rule=wroc.rules.youden()",
    'criterion="closest_topleft"': "rule=wroc.rules.closest_topleft()",
    'criterion="accuracy"': "rule=wroc.rules.max_accuracy()",
    'criterion="cost", cost_fn=5, cost_fp=1, prevalence=0.2': (
        "rule=wroc.rules.least_cost(fn=5, fp=1, prevalence=0.2)"
    ),
    "max_fpr=0.1": "rule=wroc.rules.max_fpr(0.1)",
    "min_tpr=0.8": "rule=wroc.rules.min_tpr(0.8)",
    "max_selection_rate=0.25": "rule=wroc.rules.max_selection_rate(0.25)",
    "max_fpr=0.2": "threshold=wroc.rules.max_fpr(0.2)",
    "operating_point(": "confusion_matrix(",
    ", thresholds=0.5, weight": ", threshold=0.5, weight",
    "thresholds=[0.3, 0.5]": "threshold=[0.3, 0.5]",
}


def _expression(metric: str) -> str:
    return f'made.group_by("g", maintain_order=True).agg(v=wroc.{metric})'


def _compared(text: str, shape: Callable[[pl.DataFrame], pl.DataFrame] | None = None) -> Call:
    """Call a function that compares the segments of ``attributes``, once called ``by``."""
    old = text.replace("attributes=", "by=").replace(', intersections="only"', "")
    return Call(old.replace(_CROSSED, ""), text, shape)


def _gaps(text: str, *keys: str) -> Call:
    return _compared(text, partial(kept_shapes.gaps, keys=keys))


_CROSSED = ", intersections=True"
# The name of a call is the function, then what is special.
CALLS: dict[str, Call] = {
    **{
        f"{name} expression": Call(_expression(f'{name}("y", "s", weight="w"{more})'))
        for name, more in {
            "roc_auc": "",
            "gini": "",
            "ks": "",
            "average_precision": "",
            "pr_auc": "",
            "equal_error_rate": "",
            "roc_hull_auc": "",
            "roc_influence": "",
            "brier_score": "",
            "log_loss": "",
            "h_measure": "",
            "partial_auc": ", fpr=(0, 0.2)",
            "cost_partial_auc": ", cost_fn=3, cost_fp=1",
            "curve_metrics": ', metrics=["ks", "gini", "pr_auc"]',
            "roc_auc_ci": "",
            "partial_auc_ci": ", fpr=(0, 0.2)",
            "confusion_matrix": ", threshold=0.5, level=0.9",
        }.items()
    },
    "operating_point expression": Call(
        _expression('operating_point("y", "s", weight="w", criterion="youden")')
    ),
    "roc_auc_multiclass expression": Call(
        'made.select(v=wroc.roc_auc_multiclass("h", {"u": "s", "v": "t"}, average="macro"))'
    ),
    "summary": Call('wroc.summary(loans, "approved", "score", by=["race", "sex"])'),
    "summary models": Call('wroc.summary(diabetes, "progressed", ["score", "score_b"], by="sex")'),
    "summary weighted": Call('wroc.summary(ties, "y", "s", weight="w", by="g", level=0.9)'),
    "summary missing": Call('wroc.summary(missing, "y", "s", weight="w", by="g")'),
    "summary one class": Call('wroc.summary(one_class, "y", "s", by="g", method="wald")'),
    "summary extreme": Call('wroc.summary(extreme, "y", "s", weight="w", by="g")'),
    "summary frequency": Call(
        'wroc.summary(made, "y", "s", weight="n", weight_type="frequency", by="g")'
    ),
    "summary clusters": Call('wroc.summary(made, "y", "s", cluster="unit", by="g")'),
    "summary survey": Call(f'wroc.summary(survey, "y", "s", weight="w", by="g", {_SURVEY})'),
    "summary bins": Call('wroc.summary(made, "y", "s", by="g", bins=64)'),
    "summary counts": Call(
        'wroc.from_counts(wroc.score_counts(ties, "y", "s", weight="w", by="g")).summary(by="g")'
    ),
    "summary_in_ranges": Call('wroc.summary_in_ranges(made, "y", "s", by="g", rows_per_range=99)'),
    "score_counts": Call('wroc.score_counts(ties, "y", ["s", "t"], weight="w", by="g")'),
    "merge_counts": Call(
        'wroc.merge_counts([wroc.score_counts(ties, "y", "s", weight="w", by="g"),'
        ' wroc.score_counts(made, "y", "s", weight="w", by="g")], bins=32)'
    ),
    "partial_aucs": Call(
        'wroc.partial_aucs(made, "y", "s", weight="w", by="g", fpr=(0, 0.3), level=0.95)'
    ),
    "compare": Call('wroc.compare(diabetes, "progressed", ["score", "score_b"], by="sex")'),
    "compare survey": Call(f'wroc.compare(survey, "y", ["s", "t"], weight="w", {_SURVEY})'),
    "compare clusters": Call(
        'wroc.compare(made, "y", ["s", "t"], weight="w", cluster="unit", method="score")'
    ),
    "dominated_models": Call('wroc.dominated_models(made, "y", ["s", "t"], weight="w", by="g")'),
    "bootstrap": Call(
        'wroc.bootstrap(made, "y", "s", metrics=["ks", "roc_auc"], weight="w", by="g",'
        " replicates=20, seed=3)"
    ),
    "bootstrap clusters": Call(
        'wroc.bootstrap(made, "y", "s", metrics="ks", cluster="unit", replicates=20)'
    ),
    "bootstrap_replicates": Call(
        'wroc.bootstrap_replicates(made, "y", "s", metrics="ks", by="h", replicates=9)'
    ),
    "threshold_metrics": Call(
        'wroc.threshold_metrics(ties, "y", "s", thresholds=[0.3, 0.5], weight="w", by="g",'
        " level=0.95)"
    ),
    "threshold_metrics all": Call('wroc.threshold_metrics(ties, "y", "s", by="g")'),
    "threshold_metrics survey": Call(
        f'wroc.threshold_metrics(survey, "y", "s", thresholds=0.5, weight="w", by="g", level=0.95,'
        f" {_SURVEY})"
    ),
    "threshold_metrics decisions": Call(
        'wroc.threshold_metrics(made, "y", "s", selected="d", by="g", level=0.95)'
    ),
    **{
        f"operating_points {name}": Call(
            f'wroc.operating_points(made, "y", "s", {rule}, weight="w", by="g", level=0.95)'
        )
        for name, rule in {
            "youden": 'criterion="youden"',
            "closest": 'criterion="closest_topleft"',
            "accuracy": 'criterion="accuracy"',
            "cost": 'criterion="cost", cost_fn=5, cost_fp=1, prevalence=0.2',
            "max_fpr": "max_fpr=0.1",
            "min_tpr": "min_tpr=0.8, common=True",
            "max_selection_rate": "max_selection_rate=0.25",
        }.items()
    },
    "operating_points honest": Call(
        'wroc.operating_points(made, "y", "s", criterion="youden", honest="bootstrap",'
        " resamples=20, by='h')"
    ),
    "tpr_at_fpr": Call('wroc.tpr_at_fpr(made, "y", "s", fpr=[0.1, 0.2], weight="w", by="g")'),
    "fpr_at_tpr": Call('wroc.fpr_at_tpr(made, "y", "s", tpr=0.8, weight="w", by="g")'),
    "tpr_at_fpr survey": Call(f'wroc.tpr_at_fpr(survey, "y", "s", fpr=0.1, {_SURVEY})'),
    "confusion_curve": Call('wroc.confusion_curve(ties, "y", "s", weight="w", by="g")'),
    "roc_curve": Call('wroc.roc_curve(ties, "y", "s", weight="w", by="g", band="pointwise")'),
    "roc_curve simultaneous": Call('wroc.roc_curve(made, "y", "s", band="simultaneous")'),
    "roc_curve thinned": Call('wroc.roc_curve(made, "y", "s", by="g", max_points=20)'),
    "pr_curve": Call('wroc.pr_curve(ties, "y", "s", weight="w", by="g")'),
    "cost_curve": Call('wroc.cost_curve(made, "y", "s", cost_fn=3, cost_fp=1, by="g")'),
    "decision_curve": Call(
        'wroc.decision_curve(made, "y", "s", thresholds=[0.2, 0.5], weight="w", by="g")'
    ),
    "calibration_curve": Call('wroc.calibration_curve(made, "y", "s", weight="w", by="g")'),
    "calibration_curve quantile": Call(
        'wroc.calibration_curve(made, "y", "s", by="g", strategy="quantile")'
    ),
    "calibration_error": Call('wroc.calibration_error(made, "y", "s", weight="w", by="g")'),
    "calibration_slope": Call('wroc.calibration_slope(made, "y", "s", weight="w", by="g")'),
    "score_distribution": Call('wroc.score_distribution(made, "s", label="y", by="g")'),
    "standardized_mean_difference": _compared(
        'wroc.standardized_mean_difference(made, "s", attributes=["g", "h"], intersections=True,'
        ' weight="w")'
    ),
    "cross_auc": Call('wroc.cross_auc(made, "y", "s", by="g", weight="w")'),
    "subgroup_auc": Call('wroc.subgroup_auc(made, "y", "s", by="g", weight="w")'),
    "auc_decomposition": Call('wroc.auc_decomposition(made, "y", "s", by="g", weight="w")'),
    "abroca_test": Call('wroc.abroca_test(made, "y", "s", by="h", permutations=19)'),
    "equalized_thresholds": Call('wroc.equalized_thresholds(made, "y", "s", by="g", weight="w")'),
    "group_gaps loans": _gaps(
        'wroc.group_gaps(loans, "approved", "score", attributes="race", threshold=0.85,'
        " min_rows=30)",
        "race",
    ),
    "group_gaps weighted": _gaps(
        'wroc.group_gaps(ties, "y", "s", weight="w", attributes="g", threshold=0.5,'
        ' reference="overall")',
        "g",
    ),
    "group_gaps named": _gaps(
        'wroc.group_gaps(missing, "y", "s", attributes="g", threshold=0.5, reference="a")', "g"
    ),
    "group_gaps best": _gaps(
        'wroc.group_gaps(diabetes, "progressed", ["score", "score_b"], attributes="age_band",'
        ' reference="best", threshold=0.5)',
        "age_band",
    ),
    "group_gaps within": _gaps(
        'wroc.group_gaps(made, "y", "s", attributes="g", within="h", weight="w", threshold=0.5)',
        "g",
    ),
    "group_gaps survey": _gaps(
        f'wroc.group_gaps(survey, "y", "s", attributes="g", weight="w", threshold=0.5, {_SURVEY})',
        "g",
    ),
    "group_gaps one class": _gaps(
        'wroc.group_gaps(one_class, "y", "s", attributes="g", threshold=0.5)', "g"
    ),
    "group_gaps decisions": _gaps(
        'wroc.group_gaps(made, "y", "s", selected="d", attributes="g")', "g"
    ),
    "group_gaps crossed": _gaps(
        'wroc.group_gaps(made, "y", "s", attributes=["g", "h"], intersections="only",'
        " threshold=0.5)",
        "g",
        "h",
    ),
    "impact_ratios": _compared(
        'wroc.impact_ratios(loans, "score", attributes=["race", "sex"], intersections=True,'
        " threshold=0.85,"
        ' favorable="selected")',
        kept_shapes.impact,
    ),
    "impact_ratios rejected": _compared(
        'wroc.impact_ratios(made, "s", attributes=["g"], threshold="median", weight="w",'
        ' favorable="rejected")',
        partial(kept_shapes.impact, rejected=True),
    ),
    "impact_ratios survey": _compared(
        'wroc.impact_ratios(survey, attributes="g", selected="d", weight="w", favorable="selected",'
        f" {_SURVEY})",
        kept_shapes.impact,
    ),
    "fairness": _compared(
        'wroc.fairness(loans, "approved", "score", attributes="race", threshold=0.85)',
        kept_shapes.fairness,
    ),
    "fairness weighted": _compared(
        'wroc.fairness(made, "y", ["s", "t"], attributes="g", weight="w", threshold=0.5)',
        kept_shapes.fairness,
    ),
    "audit loans": Call(
        'wroc.audit(loans, "approved", "score", by=["race", "sex"], threshold=0.85,'
        ' favorable="selected")'
    ),
    "audit rejected": Call(
        'wroc.audit(made, "y", "s", by=["g", "h"], intersections=True, max_fpr=0.2, weight="w",'
        ' favorable="rejected", reference={"g": "a"})'
    ),
    "audit models": Call(
        'wroc.audit(diabetes, "progressed", ["score", "score_b"], by=["sex", "age_band"],'
        ' weight="weight", threshold=0.5, favorable="neither")'
    ),
    "audit survey": Call(
        f'wroc.audit(survey, "y", "s", by="g", weight="w", threshold=0.5, favorable="selected",'
        f" {_SURVEY})"
    ),
    "audit decisions": Call(
        'wroc.audit(missing, "y", "s", by="g", selected="d", favorable="selected", min_cell=5)'
    ),
    "audit bins": Call('wroc.audit(made, "y", "s", by="g", bins=64)'),
    "audit counts": Call(
        'wroc.from_counts(wroc.score_counts(ties, "y", "s", by="g")).audit(by="g", threshold=0.5,'
        ' favorable="selected")'
    ),
    "audit_in_ranges": Call(
        'wroc.audit_in_ranges(made, "y", "s", by="g", threshold=0.5, favorable="selected",'
        " rows_per_range=200)"
    ),
}
_IMPACT_COLUMNS = (
    *("n_missing", "weight", "share", "n_selected", "threshold"),
    *("impact_ratio_low", "impact_ratio_high", "z", "p_method"),
    *("shortfall", "shortfall_four_fifths", "below_four_fifths"),
)
_AUDIT_COLUMNS = {
    "segments": "se ci_method n_eff_pos n_eff_neg gini ks inverted k_pos k_neg ci_note small tnr"
    " fnr balanced_accuracy f1 mcc youden lift prevalence zero_one_loss fdr for markedness f2"
    " jaccard lr_pos lr_neg net_benefit df_segment auc_low auc_high deff df",
    "calibration": "n weight mean_score observed_rate observed_rate_low observed_rate_high"
    " n_extreme oe_ratio oe_low oe_high calibration_intercept calibration_intercept_low"
    " calibration_intercept_high calibration_slope_se",
    "fairness": "ci_low ci_high",
    "impact": " ".join(_IMPACT_COLUMNS),
    "findings": "material mirror reason",
    "gaps": "n_pos n_neg",
}
# Columns that have another name, by the first word of a call.
_LIMITED = {
    **dict.fromkeys(["summary", "summary_in_ranges", "roc_auc_ci"], "auc"),
    **dict.fromkeys(["partial_aucs", "partial_auc_ci"], "partial_auc"),
    "compare": "difference",
    "cross_auc": "xauc",
    "bootstrap": "value",
}
RENAMED = {
    **{
        (call, f"{before}{old}"): f"{before}{name}_{new}"
        for call, name in _LIMITED.items()
        for before in ("", "v.")
        for old, new in (("se", "se"), ("ci_low", "low"), ("ci_high", "high"))
    },
    **{
        (call, f"{name}_{old}"): f"{name}_{new}"
        for call, name, old, new in (
            *(("summary", "auc", *ends) for ends in (("low", "min"), ("high", "max"))),
            *(("partial_aucs", "partial_auc", *ends) for ends in (("low", "min"), ("high", "max"))),
            *(("tpr_at_fpr", "tpr", *ends) for ends in (("least", "min"), ("most", "max"))),
            *(("fpr_at_tpr", "fpr", *ends) for ends in (("least", "min"), ("most", "max"))),
        )
    },
    **{("calibration_slope", f"oe_{end}"): f"oe_ratio_{end}" for end in ("low", "high")},
}
# What has no successor: (call, table or column) and why.
GONE: dict[tuple[str, str], str] = {
    **{
        ("summary frequency", name): "rows are counted as often as their frequency says"
        for name in ("n", "n_pos", "n_neg")
    },
    ("audit_in_ranges", "findings"): "slopes in ranges are not measured, so no findings",
    ("*", "auc_gap_se"): "the limits say it",
    **{
        ("impact_ratios", name): "counts are in `operating_points`, tests in reason and verdict"
        for name in _IMPACT_COLUMNS
    },
    **{("fairness", name): "limits of a picked pair" for name in ("ci_low", "ci_high")},
    **{
        (table, name): "segments hold counts; summary, threshold_metrics and calibration the rest"
        for table, names in _AUDIT_COLUMNS.items()
        for name in names.split()
    },
    **{
        ("summary_in_ranges", name): "diagnostics"
        for name in [
            "w_pos",
            "w_neg",
            "ci_method",
            "n_eff_pos",
            "n_eff_neg",
            "inverted",
            "k_pos",
            "k_neg",
            "ci_note",
        ]
    },
    **{(call, "gini"): "an expression" for call in ("summary", "summary_in_ranges")},
    **{
        ("roc_auc_ci", f"v.{name}"): "diagnostics of summary"
        for name in ("k_pos", "k_neg", "ci_note")
    },
    ("calibration_error", "weight"): "calibration_curve has it",
    ("*", "rank"): "two gaps may be equal but for rounding, so that either comes first",
}
_AUDIT_TABLES = ("segments", "curves", "gaps", "calibration", "fairness", "impact", "findings")


def run(name: str, engine: Any) -> dict[str, pl.DataFrame]:
    """Run a call and return its tables, without structs and lists."""
    call = CALLS[name]
    with wroc.Config(engine=engine):
        result = eval(call.now, {"wroc": wroc, "pl": pl, "partial": partial, **DATA})  # noqa: S307
    return {key: _flat(table) for key, table in tables_of(result, call).items()}


def tables_of(result: Any, call: Call) -> dict[str, pl.DataFrame]:
    """Name the tables of a result."""
    if isinstance(result, pl.DataFrame):
        return {"table": result if call.shape is None else call.shape(result)}
    if hasattr(result, "table"):
        return kept_shapes.audit(result, rejected="rejected" in call.old)
    tables = {name: getattr(result, name) for name in _AUDIT_TABLES}
    # The order of two findings that are equally serious depends on the last bits of their gaps.
    keys = ["attribute", "segment", "metric"] + ["model"] * ("model" in result.findings.columns)
    tables["findings"] = result.findings.sort(keys)
    return {name: table for name, table in tables.items() if table is not None}


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    while nested := [name for name, dtype in table.schema.items() if dtype == pl.Struct]:
        for name in nested:
            parts = [
                pl.col(name).struct.field(part.name).alias(f"{name}.{part.name}")
                for part in table.schema[name].fields  # type: ignore[attr-defined]
            ]
            table = table.with_columns(parts).drop(name)
    lists = [name for name, dtype in table.schema.items() if dtype == pl.List]
    numbers = [name for name in lists if table.schema[name].inner.is_numeric()]  # type: ignore[attr-defined]
    if numbers:
        table = table.explode(numbers)
    return table.with_columns(
        pl.col([name for name in lists if name not in numbers]).list.join(", ")
    )
