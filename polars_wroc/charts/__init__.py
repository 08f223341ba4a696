"""Altair charts of the package's tables.

A chart draws the rows of its table, thinned if there are too many. It computes only what labels
and lines need and the table lacks: areas, average precisions, prevalences and costs of curves.

Each chart is a plain Altair object to restyle. No theme is enabled and no global option is set.
"""

from polars_wroc.charts.calibration_chart import calibration_chart
from polars_wroc.charts.cost_chart import cost_chart
from polars_wroc.charts.decision_chart import decision_chart
from polars_wroc.charts.det_chart import det_chart
from polars_wroc.charts.distribution_chart import distribution_chart
from polars_wroc.charts.gain_chart import gain_chart
from polars_wroc.charts.gap_chart import auc_chart, gap_chart
from polars_wroc.charts.options import save_chart
from polars_wroc.charts.pr_chart import pr_chart
from polars_wroc.charts.rates_chart import rates_chart
from polars_wroc.charts.roc_chart import roc_chart
from polars_wroc.charts.table_charts import matrix_chart, tradeoff_chart
from polars_wroc.charts.threshold_chart import threshold_chart

__all__ = [
    "auc_chart",
    "calibration_chart",
    "cost_chart",
    "decision_chart",
    "det_chart",
    "distribution_chart",
    "gain_chart",
    "gap_chart",
    "matrix_chart",
    "pr_chart",
    "rates_chart",
    "roc_chart",
    "save_chart",
    "threshold_chart",
    "tradeoff_chart",
]
