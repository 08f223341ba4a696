"""Time what decisions need, as multiples of one `roc_auc`: areas, thresholds, hulls, all at once.

Works like speed.py, on the same data.

    python benchmarks/decisions.py --rows 200000
"""

from __future__ import annotations

from typing import Any

import polars as pl
import speed

import polars_wroc as wroc
from polars_wroc.metrics.registry import Metrics

LIMIT = 1.6
TEN: Metrics = {
    "auc": "roc_auc",
    "gini": "gini",
    "ks": "ks",
    "average_precision": "average_precision",
    "pr_auc": "pr_auc",
    "equal_error_rate": "equal_error_rate",
    "early": wroc.PartialAUC(fpr=(0.0, 0.1)),
    "sensitive": wroc.PartialAUC(tpr=(0.8, 1.0)),
    "dear_fn": wroc.CostPartialAUC(cost_fn=0.7),
    "dear_fp": wroc.CostPartialAUC(cost_fn=0.3, value="corrected"),
}


def main() -> None:
    """Make the data, measure and report."""
    options = speed.options_of("Time what decisions need against one roc_auc.")
    df = speed.synthetic(options.rows, options.seed).with_columns(
        probability=1 / (1 + (-pl.col("score")).exp())
    )
    contestants = field(df)
    for contestant in contestants:
        contestant.run()
    times = speed.measure(contestants, options.rounds, options.rounds)
    data = (
        f"{options.rows:,} rows in {speed.SEGMENTS} segments, {options.rounds} rounds; ratios as "
        "for speed.py."
    )
    table = speed.speed_table(contestants, times)
    speed.publish([speed.machine(), data, table], options.output)


def field(df: pl.DataFrame) -> list[speed.Contestant]:
    """List one contestant for each thing that a decision may need."""
    score: dict[str, Any] = {"label": "y", "score": "score", "weight": "weight"}
    probability = score | {"score": "probability"}
    expressions = {
        "operating_point, youden": wroc.confusion_matrix(**score, threshold=wroc.rules.youden()),
        "operating_point, max_fpr": wroc.confusion_matrix(
            **score, threshold=wroc.rules.max_fpr(0.1)
        ),
        "partial_auc, fpr": wroc.partial_auc(**score, fpr=(0.0, 0.1)),
        "partial_auc, tpr": wroc.partial_auc(**score, tpr=(0.8, 1.0)),
        "partial_auc, both": wroc.partial_auc(**score, fpr=(0.0, 0.5), tpr=(0.2, 1.0)),
        "cost_partial_auc": wroc.cost_partial_auc(**score, cost_fn=0.7),
        "pr_auc": wroc.pr_auc(**score),
        "equal_error_rate": wroc.curve_metrics(**score, metrics="equal_error_rate"),
        "roc_hull_auc": wroc.curve_metrics(**score, metrics="roc_hull_auc"),
        "h_measure": wroc.curve_metrics(**score, metrics="h_measure"),
        "brier_score": wroc.brier_score(**probability),
        "curve_metrics, ten at once": wroc.curve_metrics(**score, metrics=TEN),
    }
    auc = wroc.roc_auc(**score).alias("auc")
    one = speed.Contestant("roc_auc", lambda: df.group_by("g").agg(auc))
    several = [
        speed.Contestant(name, _aggregate(df, expression), against="roc_auc", limit=_limit(name))
        for name, expression in expressions.items()
    ]
    return [one, *several]


def _limit(name: str) -> float | None:
    return None if "ten" in name else LIMIT


def _aggregate(df: pl.DataFrame, expression: pl.Expr) -> speed.Run:
    return lambda: df.group_by("g").agg(expression)


if __name__ == "__main__":
    main()
