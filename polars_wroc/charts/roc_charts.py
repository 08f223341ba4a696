"""Charts of ROC curves, and of precision, detection errors and gains."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import altair as alt
import polars as pl
import scipy

from polars_wroc import checks
from polars_wroc.bounds import InnerProportion
from polars_wroc.calls import check_call
from polars_wroc.charts.groups import assign_groups, find_limits, read_table
from polars_wroc.charts.look import INK, without_checks
from polars_wroc.charts.options import ChartOptions, plain_name, read_options
from polars_wroc.charts.plot import Axis, Corner, Plot, ends_of
from polars_wroc.charts.wording import format_numbers, join_sentences, write_ends, write_range
from polars_wroc.documents.numbers import write_number
from polars_wroc.inputs.columns import ROC_COLUMNS
from polars_wroc.inputs.reasons import ONE_CLASS
from polars_wroc.queries import over
from polars_wroc.ranking.curve_points import with_auc

ROC_CURVE = "`roc_curve`"
FPR = Axis("False positive rate")
TPR = Axis("↑ True positive rate")


@check_call
@without_checks
def roc_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    summary: pl.DataFrame | pl.LazyFrame | None = None,
    points: pl.DataFrame | pl.LazyFrame | None = None,
    det: bool = False,
    band: bool | None = None,
    **options: Unpack[ChartOptions],
) -> alt.LayerChart | alt.FacetChart:
    """Draw ROC curves with the AUC of each, or detection error tradeoff (DET) curves.

    Parameters
    ----------
    curves
        The table of `roc_curve`; a LazyFrame is collected.
    summary
        The table of `summary` for the same rows, weights and groups: the label of each curve then
        shows the confidence interval of its AUC. Not with ``det``, whose labels show no AUC.
    points
        A table with the columns ``fpr`` and ``tpr`` for the same groups, for example the table of
        `threshold_metrics`. Its rows are marked on the curves.
    det
        Draw the false negative rate against the false positive rate, both as normal deviates, with
        the equal error rate of each curve. Use it for scores whose errors are both rare.
    band
        Whether to draw the confidence band of a table made by ``roc_curve(band=...)``. None: only
        if there are at most three curves in a panel.
    **options
        See `ChartOptions`. ``sort="value"``, and the choice of curves in color, go by the AUC, with
        ``det`` by the equal error rate.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        The curves, a dashed line for a random score, and a label for each curve. A long curve is
        drawn through about 160 points of the table. A DET curve leaves out points with a rate of 0
        or 1.

    Raises
    ------
    TypeError, ValueError
        For a table of another function, an argument that does not fit the table, or a summary with
        other AUCs than the curves.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> patients = wroc.data.diabetes()
    >>> curves = wroc.roc_curve(patients, "progressed", "score", by="sex")
    >>> aucs = wroc.summary(patients, "progressed", "score", by="sex")
    >>> chart = wroc.roc_chart(curves, summary=aucs, facet="sex")
    >>> type(chart).__name__
    'FacetChart'
    >>> chart.save("roc.png", scale_factor=2)  # doctest: +SKIP
    >>> chart.save("roc.html", inline=True)  # doctest: +SKIP
    """
    chosen = read_options(options)
    table, keys = read_table("curves", curves, ROC_COLUMNS, ROC_CURVE)
    rows = _det_rows(table, keys) if det else _roc_rows(table, keys)
    if summary is not None:
        if det:
            rule = "be None with `det`, whose labels show the equal error rate instead of the AUC"
            checks.reject("summary", rule, "a table")
        rows = _add_limits(rows, keys, summary)
    x, y = _det_axes(rows) if det else (FPR, TPR)
    if points is not None:
        rows = pl.concat([rows, _read_points(points, keys, det=det)], how="diagonal_relaxed")
        x, y = (x, y) if det else (x.with_room(), y.with_room())
    plot = Plot(*assign_groups(rows, keys, chosen), chosen, x, y)
    marks = plot.rows.filter("mark")
    plot.rows = plot.rows.filter(pl.col("mark").is_null())
    plot.thin_curves()
    plot.draw_diagonal(falls=det)
    plot.draw_curves(band=band)
    number = format_numbers("rank", ".1%" if det else ".3f").fill_null(ONE_CLASS)
    corners: list[Corner] = ["bottom right", "top left", "bottom left"]
    if det:
        corners = ["top right", "bottom left"]
    limits = pl.col("limits").fill_null("")
    plot.list_labels(corners, number if summary is None else pl.concat_str(number, limits))
    rates = ("fpr", "tpr") if det else ("x", "y")
    titles = dict(zip(rates, ("false positive rate", "true positive rate"), strict=True))
    plot.add_tooltips("curve", {"threshold": "threshold"} | titles)
    if marks.height:
        base = plot.add_rows("mark", marks.select("x", "y", "color", "panel"))
        diamond = base.mark_point(shape="diamond", filled=True, size=110, opacity=1, stroke=INK)
        plot.layers.append(diamond.encode(plot.across(), plot.up(), plot.fill()))
    what = "equal error rate" if det else "AUC"
    numbers = f"Numbers: {what}"
    if summary is not None:
        numbers += " and its confidence interval"
    elif plot.groups.color is None and not plot.has_panels:
        numbers = ""
    given = "Diamonds: the given points" if marks.height else ""
    key = join_sentences(numbers, "Dashed: a random score", given)
    return plot.finish(_title(plot, what), key)


def _roc_rows(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Return ROC curves with columns by role."""
    with_areas = with_auc(table.lazy(), keys).collect()
    mark, limits = pl.lit(None, pl.Boolean), find_limits(table, "tpr")
    return with_areas.select(*keys, "threshold", x="fpr", rank="auc", mark=mark, **limits)


def _det_rows(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Return ROC curves as DET curves, with columns by role: normal deviates of both errors."""
    fpr, fnr = pl.col("fpr"), 1 - pl.col("tpr")
    off = fpr - fnr
    # Both errors are equal between the last point before and the first point after.
    share = -off.shift(1) / (off - off.shift(1))
    equal = fpr.shift(1) + share * (fpr - fpr.shift(1))
    rows = table.select(
        *keys,
        *("threshold", "fpr", "tpr"),
        x=_deviate("fpr"),
        y=-_deviate("tpr"),
        rank=over(pl.when(off >= 0).then(equal).drop_nulls().first(), keys),
        mark=pl.lit(None, pl.Boolean),
    )
    both = pl.col("x").is_finite() & pl.col("y").is_finite()
    if not rows.select(both.any()).item():
        checks.reject("curves", "have errors of both kinds to be drawn with `det`", "none")
    return rows.filter(both | over(~both.any(), keys)).with_columns(
        pl.when(both).then(pl.col("x", "y"))
    )


def _deviate(column: str) -> pl.Expr:
    return pl.col(column).map_batches(
        lambda rates: pl.Series(scipy.special.ndtri(rates.to_numpy())), return_dtype=pl.Float64
    )


_PERCENTS = (0.0001, 0.001, 0.01, 0.1, 1, 5, 20, 50, 80, 95, 99)


def _det_axes(rows: pl.DataFrame) -> tuple[Axis, Axis]:
    """Return axes of normal deviates, labelled in percent, which include all points."""
    least, most = ends_of(rows, "x", "y")
    deviates = [float(scipy.special.ndtri(percent / 100)) for percent in _PERCENTS]
    ends = (
        min(least, float(scipy.special.ndtri(0.01))) - 0.05,
        max(most, float(scipy.special.ndtri(0.8))) + 0.05,
    )
    values = [value for value in deviates if ends[0] <= value <= ends[1]]
    labels = "format(100 * cumulativeNormal(datum.value), '.3~g') + '%'"
    across = Axis("False positive rate", ends, labels=labels, values=values)
    return across, replace(across, title="↑ False negative rate")


# The AUCs of a summary may be rounded to the decimals of the labels.
_AUC_ROUNDING = 0.00051


def _add_limits(rows: pl.DataFrame, keys: list[str], summary: object) -> pl.DataFrame:
    """Add the limits of the AUC of each curve, as text after the AUC."""
    table, groups = read_table("summary", summary, ("auc", "auc_low", "auc_high"), "`summary`")
    if set(groups) != set(keys):
        rule = f"have the groups of the curves, {_write_names(keys)}, to show their AUCs"
        checks.reject("summary", rule, _write_names(groups))
    low, high = (format_numbers(f"auc_{end}", ".2f") for end in ("low", "high"))
    known = table.select(*keys, __auc="auc", limits=pl.format(" ({}\N{EN DASH}{})", low, high))
    if keys:
        rows = rows.join(known, on=keys, how="left", nulls_equal=True, maintain_order="left")
    else:
        rows = rows.join(known.head(1), how="cross", maintain_order="left")
    off = rows.filter((pl.col("rank") - pl.col("__auc")).abs() > _AUC_ROUNDING)
    if off.height:
        rule = "be of the same rows and weights as the curves"
        row = off.row(0, named=True)
        group = ", ".join(f"{plain_name(key)} = {row[key]}" for key in keys)
        where = f" for {group}" if keys else ""
        found = f"AUC {row['__auc']:.3f}{where}, and AUC {row['rank']:.3f} in the curve"
        checks.reject("summary", rule, found)
    return rows.drop("__auc")


def _write_names(keys: list[str]) -> str:
    return str([plain_name(key) for key in keys])


def _read_points(points: object, keys: list[str], *, det: bool) -> pl.DataFrame:
    """Return the points to mark."""
    table, own_groups = read_table("points", points, ("fpr", "tpr"), "`threshold_metrics`")
    table = table.rename({key: plain_name(key) for key in own_groups})
    if missing := [key for key in keys if plain_name(key) not in table.columns]:
        rule = f"have the groups of the curves, {_write_names(keys)}"
        checks.reject("points", rule, f"no {_write_names(missing)}")
    own = [pl.col(plain_name(key)).alias(key) for key in keys]
    x, y = (_deviate("fpr"), -_deviate("tpr")) if det else (pl.col("fpr"), pl.col("tpr"))
    return table.select(*own, x=x, y=y, mark=pl.lit(value=True))


def _title(plot: Plot, what: str) -> str:
    """Return the title: the curves with the lowest and the highest number."""
    known = plot.curves.drop_nulls("rank").sort("rank", maintain_order=True).to_dicts()
    if not known:
        return f"No {what}: each curve has rows of one class only"
    form = ".2f" if what == "AUC" else ".1%"
    if len(known) == 1 and what == "AUC":
        return f"In {100 * known[0]['rank']:.0f} of 100 pairs the positive has the higher score"
    if len(known) == 1:
        return f"Both errors are equally frequent at {write_number(known[0]['rank'], form)}"
    named = [(write_number(each["rank"], form), plot.groups.write_name(each)) for each in known]
    return f"{what[0].upper()}{what[1:]} from {write_ends(named)}"


_HALF = 0.5
_PR_COLUMNS = ("threshold", "recall", "precision", "tp", "fp", "fn", "tn")


@check_call
@without_checks
def pr_chart(
    curves: pl.DataFrame | pl.LazyFrame, **options: Unpack[ChartOptions]
) -> alt.LayerChart | alt.FacetChart:
    """Draw precision-recall curves with the average precision of each, and the prevalence.

    Parameters
    ----------
    curves
        The table of `pr_curve`; a LazyFrame is collected.
    **options
        See `ChartOptions`. Curves are sorted, and chosen for color, by average precision.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        The points are joined by steps: the precision at a threshold applies to the recall gained
        there. The area under the steps is the average precision. A dashed line shows the
        prevalence, which is the precision of a random selection; if it differs between groups, each
        group has a line in its color.

    Raises
    ------
    TypeError, ValueError
        For a table of another function, or an argument that does not fit the table.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> type(wroc.pr_chart(wroc.pr_curve(df, "y", "s"))).__name__
    'LayerChart'
    """
    chosen = read_options(options)
    table, keys = read_table("curves", curves, _PR_COLUMNS, "`pr_curve`")
    recall, precision = pl.col("recall"), pl.col("precision")
    gained = recall - recall.shift(1, fill_value=0.0)
    positives = pl.col("tp") + pl.col("fn")
    average = pl.when(recall.is_not_null().any()).then((gained * precision).sum())
    rows = table.select(
        *keys,
        "threshold",
        x=recall,
        # The first step begins at the axis.
        y=over(precision.backward_fill(), keys),
        prevalence=positives / pl.sum_horizontal("tp", "fp", "fn", "tn"),
        rank=over(average, keys),
        half=over(precision.filter(recall >= _HALF).first(), keys),
    )
    plot = Plot(
        *assign_groups(rows, keys, chosen),
        chosen,
        Axis("Recall: share of the positives that are selected"),
        Axis("↑ Precision: share of those selected that are positive"),
    )
    plot.thin_curves()
    chance = _draw_prevalence(plot)
    plot.draw_curves(steps=True)
    text = format_numbers("rank", ".2f").fill_null(ONE_CLASS)
    plot.list_labels(["bottom left", "top right", "bottom right"], text)
    plot.add_tooltips("curve", {"threshold": "threshold", "x": "recall", "y": "precision"})
    half = plot.curves["half"]
    title = (
        f"Where half of the positives are selected, precision is {write_range(half)}"
        if half.count()
        else "No precision: there are no positives"
    )
    return plot.finish(title, f"Numbers: average precision. Dashed: a random selection, {chance}")


def _draw_prevalence(plot: Plot) -> str:
    """Draw the prevalence as a line, or one for each group, and return it in words."""
    curves = plot.curves
    said = write_range(curves["prevalence"])
    low, high = curves["prevalence"].min(), curves["prevalence"].max()
    if low == high and isinstance(low, float):
        plot.draw_line(y=low)
        return said
    lines = curves.filter(pl.col("color").is_in(plot.groups.shown))
    base = plot.add_rows("chance", lines.select("color", "panel", y="prevalence"))
    mark = base.mark_rule(strokeDash=[3, 3], opacity=0.7, aria=False)
    plot.layers.append(mark.encode(plot.up(), plot.stroke()))
    return said


@check_call
@without_checks
def gain_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    lift: bool = False,
    at: InnerProportion = 0.2,
    **options: Unpack[ChartOptions],
) -> alt.LayerChart | alt.FacetChart:
    """Draw the share of the positives among the rows with the highest scores, or the lift.

    Parameters
    ----------
    curves
        The table of `roc_curve`; a LazyFrame is collected.
    lift
        Draw the lift instead: how many times as many positives there are as in a random selection
        of as many rows.
    at
        Share of the rows, from the highest scores down, for which labels give the number.
    **options
        See `ChartOptions`. Curves are sorted, and chosen for color, by the number that is written.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Shares are shares of the weight. Rows with the same score are selected in random order, so
        curves are straight between two points. A dashed line shows a random order of all rows.

    Raises
    ------
    TypeError, ValueError
        For a table of another function, or an argument that does not fit the table.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> chart = wroc.gain_chart(wroc.roc_curve(df, "y", "s"), lift=True)
    >>> type(chart).__name__
    'LayerChart'
    """
    chosen = read_options(options)
    table, keys = read_table("curves", curves, ROC_COLUMNS, ROC_CURVE)
    x, y = pl.col("x"), pl.col("y")
    share = (pl.col("tp") + pl.col("fp")) / pl.sum_horizontal("tp", "fp", "fn", "tn")
    rows = table.select(*keys, "threshold", x=share, y="tpr")
    # Straight between two points, for a part of the rows of a tie.
    part = (at - x.shift(1)) / (x - x.shift(1))
    found = pl.when(x >= at).then(y.shift(1) + part * (y - y.shift(1)))
    rows = rows.with_columns(rank=over(found.drop_nulls().first(), keys))
    if lift:
        rows = rows.filter(x > 0).with_columns(y=y / x, rank=pl.col("rank") / at)
    most = ends_of(rows, "y")[1] or 2.0
    y_axis = Axis("↑ Share of the positives that are among them")
    if lift:
        title = "↑ Times as many positives as in a random selection"
        y_axis = Axis(title, (0, 1.05 * most), ".1f")
    x_axis = Axis("Share of the rows, highest scores first")
    plot = Plot(*assign_groups(rows, keys, chosen), chosen, x_axis, y_axis)
    plot.thin_curves()
    if lift:
        plot.draw_line(y=1)
    else:
        plot.draw_diagonal()
    plot.draw_line(x=at, strokeDash=[1, 0], strokeWidth=0.7)
    plot.draw_curves()
    form = ".1f" if lift else ".0%"
    corners: list[Corner] = ["bottom right", "top left"]
    if lift:
        corners = ["top right", "bottom right"]
    plot.list_labels(corners, format_numbers("rank", form).fill_null(ONE_CLASS))
    named = "lift" if lift else "share of the positives"
    plot.add_tooltips("curve", {"threshold": "threshold", "x": "share of rows", "y": named})
    held = write_range(plot.curves["rank"], form)
    title = f"The top {at:.0%} of rows hold {held} of the positives"
    if lift:
        title = f"The top {at:.0%} of rows hold {held} times as many positives as a random {at:.0%}"
    return plot.finish(title, f"Numbers: at {at:.0%}. Dashed: a random order")
