"""An audit as one HTML page that opens without a network."""

from __future__ import annotations

import json
import re
from typing import Any

import altair as alt
import jinja2
import polars as pl

from polars_wroc.audit_result import Audit
from polars_wroc.charts import auc_chart, segments_chart, segments_threshold_chart
from polars_wroc.findings import REFERENCES, gap_finding
from polars_wroc.thinning import AUC_CHANGE

_HEADINGS = {
    "segment": "Segment",
    "model": "Score",
    "n": "Rows",
    "n_pos": "Positive",
    "n_neg": "Negative",
    "n_missing": "Missing",
    "w_pos": "Positive weight",
    "w_neg": "Negative weight",
    "auc": "AUC",
    "interval": "Interval",
    "gini": "Gini",
    "ks": "KS",
    "average_precision": "Average precision",
}

_DECISION_HEADINGS = {
    "segment": "Segment",
    "model": "Score",
    "threshold": "Threshold",
    "selection_rate": "Selected",
    "tpr": "True positive rate",
    "fpr": "False positive rate",
    "ppv": "Precision",
    "npv": "Negative predictive value",
    "accuracy": "Accuracy",
}
_GAP_HEADINGS = {
    "segment": "Segment",
    "model": "Score",
    "n_pos": "Positive",
    "n_neg": "Negative",
    "auc_gap": "AUC",
    "auc_gap_p_adjusted": "adjusted p",
    "selection_rate_gap": "Selected",
    "selection_rate_gap_p_adjusted": "adjusted p",
    "tpr_gap": "True positive rate",
    "tpr_gap_p_adjusted": "adjusted p",
    "fpr_gap": "False positive rate",
    "fpr_gap_p_adjusted": "adjusted p",
    "ppv_gap": "Precision",
    "ppv_gap_p_adjusted": "adjusted p",
}
_FAIRNESS_HEADINGS = {
    "metric": "Metric",
    "model": "Score",
    "value": "Value",
    "interval": "Interval",
    "group_max": "Highest",
    "group_min": "Lowest",
}
_RATES = ("selection_rate", "tpr", "fpr", "ppv", "npv", "accuracy")
_LIMITS = "_limits"
_RULES = {
    "youden": "the largest difference of true and false positive rate",
    "closest_topleft": "the point closest to a perfect one",
    "accuracy": "the fewest errors",
    "cost": "the least expected cost",
    "max_fpr": "the most positives found with a false positive rate of at most {:g}",
    "min_tpr": "the fewest false positives with a true positive rate of at least {:g}",
    "max_selection_rate": "the most selected that are at most {:g} of all",
}


def render(audit: Audit) -> str:
    """Render the tables of an audit as a self-contained page.

    Raises
    ------
    ImportError
        When vl-convert-python is not installed, with the command that installs it.
    """
    segments, curves, settings = audit.segments, audit.curves, audit.settings
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("polars_wroc"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["script"] = _in_script
    attributes = segments["attribute"].unique(maintain_order=True).to_list()
    sections = [_section(audit, attribute) for attribute in attributes]
    overall = segments.filter(attribute=attributes[0])
    return environment.get_template("report.html").render(
        settings=settings,
        sections=sections,
        aucs=auc_chart(segments).to_dict(),
        rows=overall.select(pl.col("n") + pl.col("n_missing")).to_series().max(),
        missing=overall["n_missing"].max(),
        decision=_decision(settings),
        findings=[gap_finding(audit.gaps, settings), *_findings(segments, attributes)],
        moved=curves[AUC_CHANGE].abs().max() or 0.0,
        script=_bundle(),
    )


def _section(audit: Audit, attribute: str) -> dict[str, Any]:
    segments, curves = audit.segments, audit.curves
    of_attribute = segments.filter(attribute=attribute)
    tables = [_table(of_attribute.with_columns(interval=_limits("ci")), _HEADINGS)]
    if "threshold" in segments.columns:
        limits = [_limits(rate).alias(f"{rate}{_LIMITS}") for rate in _RATES]
        decisions = _table(of_attribute.with_columns(limits), _DECISION_HEADINGS)
        tables.append(decisions | {"title": "Decisions at the threshold"})
    gaps = audit.gaps.filter(attribute=attribute)
    if not gaps.is_empty():
        reference = REFERENCES[audit.settings["reference"]]
        tables.append(_gap_table(gaps) | {"title": f"Gaps to {reference}"})
    if audit.fairness is not None:
        metrics = audit.fairness.filter(attribute=attribute).with_columns(interval=_limits("ci"))
        if not metrics.is_empty():
            tables.append(_table(metrics, _FAIRNESS_HEADINGS) | {"title": "Fairness metrics"})
    slider = segments_threshold_chart(curves, segments, attribute)
    return {
        "attribute": attribute,
        "tables": tables,
        "chart": segments_chart(curves, segments, attribute).to_dict(),
        "slider": None if slider is None else slider.to_dict(),
    }


def _table(table: pl.DataFrame, headings: dict[str, str]) -> dict[str, Any]:
    names = [name for name in headings if name in table.columns]
    return {
        "title": None,
        "headings": [headings[name] for name in names],
        "rows": [
            [_cell(name, row[name], row.get(f"{name}{_LIMITS}")) for name in names]
            for row in table.iter_rows(named=True)
        ],
        "text_columns": sum(table.schema[name] == pl.String for name in names),
    }


def _gap_table(gaps: pl.DataFrame) -> dict[str, Any]:
    measured = [rate for rate in ("auc", *_RATES) if f"{rate}_gap" in gaps.columns]
    limits = [_limits(f"{rate}_gap").alias(f"{rate}_gap{_LIMITS}") for rate in measured]
    return _table(gaps.with_columns(limits), _GAP_HEADINGS)


def _limits(name: str) -> pl.Expr:
    return pl.struct(ci_low=f"{name}_low", ci_high=f"{name}_high")


def _decision(settings: dict[str, Any]) -> str | None:
    """Say where decisions are measured, and why there."""
    rule = settings["rule"]
    if rule is None:
        threshold = settings["threshold"]
        return None if threshold is None else f"at the given threshold of {threshold:.10g}"
    names = {name: value for name, value in rule.items() if value is not None}
    name = names.get("criterion") or next(iter(names))
    what = _RULES[name].format(names.get(name))
    given = [
        f"{n.replace('_', ' ')} {names[n]:g}"
        for n in ("cost_fn", "cost_fp", "prevalence")
        if n in names
    ]
    beside = f" ({', '.join(given)})" if given else ""
    return f"at the threshold with {what}{beside}, chosen for each score on all rows"


def _cell(name: str, value: object, limits: object = None) -> str:
    if limits is not None and value is not None:
        return f"{value:.3f} ({_cell('interval', limits)})"
    if value is None:
        return "(missing)" if name == "segment" else "\N{EN DASH}"
    if isinstance(value, dict):
        low, high = value["ci_low"], value["ci_high"]
        return "\N{EN DASH}" if low is None else f"{low:.3f} to {high:.3f}"
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.1f}" if name in ("w_pos", "w_neg") else f"{value:.3f}"


def _findings(segments: pl.DataFrame, attributes: list[str]) -> list[str]:
    """Say in words what the tables show."""
    found = []
    models = (
        segments["model"].unique(maintain_order=True) if "model" in segments.columns else [None]
    )
    for model in models:
        of_model = segments if model is None else segments.filter(model=model)
        name = (
            "The score"
            if model is None
            else f"The score \N{LEFT DOUBLE QUOTATION MARK}{model}\N{RIGHT DOUBLE QUOTATION MARK}"
        )
        auc = of_model["auc"][0]
        if auc is None:
            found.append(f"{name} has no AUC: the rows are all of one class.")
            continue
        found.append(
            f"{name} has an AUC of {_uncertain(of_model.row(0, named=True))}: of the pairs of a "
            f"positive and a negative, it ranks {auc:.1%} of the weight correctly, a tie as half."
        )
        found += [
            text
            for attribute in attributes[1:]
            if (text := _range(of_model.filter(attribute=attribute), attribute))
        ]
    return found


def _range(segments: pl.DataFrame, attribute: str) -> str | None:
    ranked = segments.drop_nulls("auc").sort("auc").to_dicts()
    undefined = segments.height - len(ranked)
    beside = f" Segments with one class only have none: {undefined}." if undefined else ""
    if len(ranked) < 2:  # noqa: PLR2004  (a range needs two)
        return None
    low, high = ranked[0], ranked[-1]
    return (
        f"By {attribute}, the AUC runs from {_uncertain(low)} in {_name(low)}, to "
        f"{_uncertain(high)} in {_name(high)}.{beside}"
    )


def _name(segment: dict[str, Any]) -> str:
    return f"{_cell('segment', segment['segment'])} ({segment['n']:,} rows)"


def _uncertain(segment: dict[str, Any]) -> str:
    return f"{segment['auc']:.3f} ({_cell('interval', segment)})"


def _bundle() -> str:
    try:
        import vl_convert  # noqa: PLC0415  (an extra)
    except ImportError as error:
        msg = "an HTML report needs vl-convert-python: pip install 'polars-wroc[report]'"
        raise ImportError(msg) from error
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version))


def _in_script(value: Any) -> str:
    """Write code or data so that it cannot close the script element around it."""
    if isinstance(value, str):
        # Only where a tag would begin: in code "</" may also be the end of a pattern.
        return re.sub(r"<(?=/script|!--)", r"\\x3c", value, flags=re.IGNORECASE)
    return json.dumps(value, allow_nan=False).replace("<", r"\u003c")
