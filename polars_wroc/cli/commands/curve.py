"""The command ``curve``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl
from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits.words import first_few
from polars_wroc.cli.options import (
    OUTPUT,
    Approximate,
    By,
    Files,
    Rows,
    Uncertainty,
    with_arguments_of,
)
from polars_wroc.cli.output import TABLES_AND_CHARTS, Report, Shown, TableOutput, show_report
from polars_wroc.cli.sentences import (
    SEPARATOR,
    columns_before,
    name_groups,
    name_place,
    say_backwards,
)
from polars_wroc.cli.source import Source
from polars_wroc.cli.terminal import print_text
from polars_wroc.config import Config
from polars_wroc.curves.cost_curve import cost_curve
from polars_wroc.curves.decision_curve import decision_curve
from polars_wroc.curves.roc_curve import pr_curve, roc_curve
from polars_wroc.documents.text_writer import write_text
from polars_wroc.files import outputs
from polars_wroc.metrics.summary import summary


@dataclass(frozen=True)
class Kind:
    """A function that makes a curve, and the options that not all kinds have."""

    function: Callable[..., Any]
    options: tuple[str, ...] = ()
    # Whether its chart is drawn from the ROC curve, and whether there is only a chart.
    drawn_from_roc: bool = False
    only_chart: bool = False


# What --kind names; each has a chart.
_KINDS = {
    "roc": Kind(roc_curve, ("max_points", "band")),
    "pr": Kind(pr_curve),
    "det": Kind(roc_curve, only_chart=True),
    "gain": Kind(roc_curve, only_chart=True),
    "cost": Kind(cost_curve, ("cost_fn", "cost_fp", "prevalence"), drawn_from_roc=True),
    "decision": Kind(decision_curve),
}
KindName = Annotated[str, Parameter(help="Which curve.", choices=[*_KINDS], group=OUTPUT)]
Costs = Annotated[float | None, Parameter(help="Costs, for --kind cost.", group=OUTPUT)]


@with_arguments_of(roc_curve, "max_points band")
def curve(
    file: Files,
    /,
    *,
    rows: Rows = Rows(),
    approximate: Approximate = None,
    by: By = None,
    kind: KindName = "roc",
    cost_fn: Costs = None,
    cost_fp: Costs = None,
    prevalence: Annotated[
        float | None,
        Parameter(help="Prevalence in the population that the cost is for.", group=OUTPUT),
    ] = None,
    uncertainty: Uncertainty = Uncertainty(),
    output: TableOutput = TableOutput(),
    **given: Any,
) -> None:
    """Write curves as a table or a chart."""
    targets = output.find_targets(TABLES_AND_CHARTS, file)
    chosen = {"cost_fn": cost_fn, "cost_fp": cost_fp, "prevalence": prevalence} | given
    chosen = {name: value for name, value in chosen.items() if value is not None}
    chart = bool(targets) and all(each.suffix in outputs.CHART_SUFFIXES for each in targets)
    _check_kind(kind, chosen, approximate)
    if _KINDS[kind].only_chart and not chart:
        msg = f"--kind {kind} is only drawn: -o FILE with .html, .png or .svg"
        raise ValueError(msg)
    asked = targets or output.columns or output.asked_rows or "band" in chosen
    is_drawing = kind == "roc" and not asked
    limited = "band" in chosen or kind == "decision"
    design = uncertainty.arguments if limited else {}
    if (
        not limited
        and uncertainty.design is not None
        and not (kind == "roc" and (is_drawing or chart))
    ):
        msg = (
            "a design applies to a ROC chart, --band pointwise and --kind decision, which have "
            f"limits; found --kind {kind}"
        )
        raise ValueError(msg)
    source = Source(
        files=file, columns=rows, group_texts=by or (), flag="--by", approximate=approximate
    )
    source.require("label", "score")
    drawn_from_roc = _KINDS[kind].drawn_from_roc and chart
    if drawn_from_roc:
        curves = source.plan(roc_curve)
    else:
        curves = source.plan(_KINDS[kind].function, **chosen, **design)
    if kind == "roc" and (is_drawing or chart):
        _show_roc(source, curves, uncertainty, output, targets, is_drawing=is_drawing)
        return
    (table,) = source.compute_all(curves)
    source.check_positives(found=_has_positives(table))
    name = kind.upper() if kind in ("roc", "pr", "det") else kind
    shown = Shown(
        f"{name} curve{name_groups([*source.group_types])}", table.select([]) if chart else table
    )

    def draw() -> list[Any]:
        options: dict[str, Any] = {"facet": source.facet}
        if kind == "det":
            return [wroc.roc_chart(table, det=True, **options)]
        # The level is that of the table.
        options |= {name: value for name, value in chosen.items() if drawn_from_roc}
        return [getattr(wroc, f"{kind}_chart")(table, **options)]

    show_report(Report(source, table, [shown], draw), output, targets)


def _check_kind(kind: str, chosen: dict[str, Any], approximate: int | None) -> None:
    """Check that the options are those of the kind of curve."""
    given = {**chosen, **({} if approximate is None else {"approximate": approximate})}
    for other, row in _KINDS.items():
        options = (*row.options, "approximate") if row.function is roc_curve else row.options
        for name in options:
            own = _KINDS[kind].options + (
                ("approximate",) if _KINDS[kind].function is roc_curve else ()
            )
            if name in given and name not in own:
                flag = f"--{name.replace('_', '-')}"
                msg = f"{flag} applies to --kind {other}; found {kind}"
                raise ValueError(msg)


def _has_positives(table: pl.DataFrame) -> bool:
    """Whether a row has the positive label."""
    positives = pl.col("prevalence" if "prevalence" in table.columns else "tp")
    if "prevalence" not in table.columns:
        positives += pl.col("fn")
    return bool(table.select(positives.sum()).item())


def _show_roc(
    source: Source,
    curves: pl.LazyFrame,
    uncertainty: Uncertainty,
    output: TableOutput,
    targets: Any,
    *,
    is_drawing: bool,
) -> None:
    """Draw ROC curves, with characters or as a chart, and the AUCs with their limits."""
    # The curves need all rows at once, and are computed together with it.
    with Config(memory="none"):
        table, aucs = source.compute_all(curves, source.plan(summary, **uncertainty.arguments))
    source.check_positives(found=bool(aucs["n_pos"].sum()))
    keys = columns_before(aucs.columns, "auc")
    shown = Shown(f"AUCs{name_groups(keys)}", aucs, keys, say_backwards(aucs, keys) or None)
    if is_drawing:
        screen = output.screen
        text = write_text(shown.write_blocks(screen), screen.terminal)
        print_text(f"{text}\n\n{_draw_with_characters(table)}\n")
        source.say_values()
        return
    report = Report(
        source,
        table,
        [shown],
        lambda: [wroc.roc_chart(table, facet=source.facet, summary=aucs)],
    )
    show_report(report, output, targets)


# The size of a drawing in characters, and what its curves are drawn with.
_WIDTH, _HEIGHT, _LETTERS = 61, 19, "abcdefghijklmnopqrstuvwxyz"


def _draw_with_characters(curves: pl.DataFrame) -> str:
    """Draw ROC curves with characters, those of the first 26 groups, and the diagonal."""
    keys, known = columns_before(curves.columns, "threshold"), curves.drop_nulls(["fpr", "tpr"])
    groups = known.partition_by(keys, as_dict=True, maintain_order=True) if keys else {(): known}
    drawn = [*zip(_LETTERS if keys else "*", groups, groups.values(), strict=False)]
    # Rates never fall along a curve, so that their sum is how far one has come.
    way = np.linspace(0, 2, 8 * _WIDTH)
    lines = [(".", way / 2, way / 2)]
    for letter, _, points in drawn:
        fpr, tpr = points.select(pl.col("fpr", "tpr").sort()).to_numpy().T
        lines.append((letter, *(np.interp(way, fpr + tpr, rate) for rate in (fpr, tpr))))
    canvas = np.full((_HEIGHT, _WIDTH), " ")
    for letter, fpr, tpr in lines:
        across, down = np.rint(fpr * (_WIDTH - 1)), np.rint((1 - tpr) * (_HEIGHT - 1))
        canvas[down.astype(int), across.astype(int)] = letter
    margins = ["1", *" " * (_HEIGHT - 2), "0"]
    rows = [f"{one} |{''.join(row)}".rstrip() for one, row in zip(margins, canvas, strict=True)]
    named = [
        f"{letter} {name_place(dict(zip(keys, group, strict=True)), keys)}"
        for letter, group, _ in drawn
    ]
    names = f"{first_few(named, SEPARATOR, len(_LETTERS))}\n" if keys else ""
    return "\n".join([f"{names}tpr", *rows, f"  +{'-' * _WIDTH}", f"   0{'fpr':^{_WIDTH - 2}}1"])
