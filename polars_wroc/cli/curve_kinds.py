"""The curves that `curve` writes."""

from __future__ import annotations

from typing import NamedTuple

from polars_wroc.cli.sources import Name


class CurveKind(NamedTuple):
    """A function that makes a curve, and the options that not all kinds have."""

    function: Name
    options: tuple[str, ...] = ()
    # Whether its chart is drawn from the ROC curve.
    drawn_from_roc: bool = False


# What `--kind` names, as the kinds of tables that have charts.
CURVES = {
    "roc": CurveKind("roc_curve", ("level", "weight_type", "max_points", "band", "bins")),
    "pr": CurveKind("pr_curve"),
    "det": CurveKind("det_curve"),
    "gain": CurveKind("gain_curve"),
    "cost": CurveKind("cost_curve", ("cost_fn", "cost_fp", "prevalence"), drawn_from_roc=True),
    "decision": CurveKind("decision_curve", ("level", "weight_type")),
}
