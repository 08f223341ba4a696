"""The command ``curve``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl
from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.bounds import NonNegative, Prevalence
from polars_wroc.cli import sentences
from polars_wroc.cli.bundles import ByGroups
from polars_wroc.cli.options import OUTPUT, Approximate, FileNames, add_bounds, with_arguments_of
from polars_wroc.cli.output import TABLES_AND_CHARTS
from polars_wroc.cli.report import Report, Shown, show_report
from polars_wroc.cli.source import Source
from polars_wroc.cli.terminal import print_text
from polars_wroc.config import Config
from polars_wroc.documents.phrases import first_few
from polars_wroc.documents.text_writer import write_text
from polars_wroc.files import outputs, prometheus


@dataclass(frozen=True)
class CurveKind:
    """The name of the function that makes a curve, and the options that not all kinds have."""

    function: str
    options: tuple[str, ...] = ()
    # Whether its chart is drawn from the ROC curve, and whether there is only a chart.
    drawn_from_roc: bool = False
    only_chart: bool = False


# The kinds of curves, each of which has a chart.
CURVE_KINDS = {
    "roc": CurveKind("roc_curve", ("max_points", "band", "approximate")),
    "pr": CurveKind("pr_curve"),
    "det": CurveKind("roc_curve", only_chart=True),
    "gain": CurveKind("roc_curve", only_chart=True),
    "cost": CurveKind("cost_curve", ("cost_fn", "cost_fp", "prevalence"), drawn_from_roc=True),
    "decision": CurveKind("decision_curve"),
}
# The points of a curve are not numbers to watch.
_WITHOUT_PROMETHEUS = [suffix for suffix in TABLES_AND_CHARTS if suffix != prometheus.SUFFIX]
CurveKindOption = Annotated[
    str, Parameter(help="Which curve.", choices=[*CURVE_KINDS], group=OUTPUT)
]


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class CostOptions:
    """The costs of errors, and the population."""

    cost_fn: Annotated[
        float | None,
        Parameter(help=add_bounds("Cost of a false negative, for --kind cost.", NonNegative)),
    ] = None
    cost_fp: Annotated[
        float | None,
        Parameter(help=add_bounds("Cost of a false positive, for --kind cost.", NonNegative)),
    ] = None
    prevalence: Annotated[
        float | None,
        Parameter(
            help=add_bounds("Prevalence in the population that the cost is for.", Prevalence)
        ),
    ] = None


@with_arguments_of(
    wroc.roc_curve,
    "max_points band",
    band="Limits of the ROC curve: pointwise, of the tpr at each fpr; simultaneous, of the whole "
    "curve.",
)
def curve(
    file: FileNames,
    /,
    *,
    options: ByGroups = ByGroups(),
    approximate: Approximate = None,
    kind: CurveKindOption = "roc",
    costs: CostOptions = CostOptions(),
    **given: Any,
) -> None:
    """Write curves as a table or a chart."""
    output, own = options.output, CURVE_KINDS[kind]
    suffixes = [target.suffix for target in output.targets]
    is_chart = bool(suffixes) and all(each in outputs.CHART_SUFFIXES for each in suffixes)
    given |= {"approximate": approximate} | vars(costs)
    given = {name: value for name, value in given.items() if value is not None}
    _check_kind(kind, given)
    if own.only_chart and not is_chart:
        msg = f"--kind {kind} is only drawn: -o FILE with .html, .png or .svg"
        raise ValueError(msg)
    asked = output.output or output.columns or output.rows or "band" in given
    has_aucs = kind == "roc" and (is_chart or not asked)
    has_limits = "band" in given or kind == "decision"
    if "design" in options.limits and not (has_limits or has_aucs):
        msg = (
            "--cluster and other options of a survey apply to a ROC chart, --band pointwise and "
            f"--kind decision, which have limits; found --kind {kind}"
        )
        raise ValueError(msg)
    source = options.read(
        file, approximate=given.pop("approximate", None), suffixes=_WITHOUT_PROMETHEUS
    )
    limits = options.limits if has_limits else {}
    if own.drawn_from_roc and is_chart:
        plan = source.plan(wroc.roc_curve)
    else:
        plan = source.plan(getattr(wroc, own.function), **given, **limits)
    if has_aucs:
        _show_aucs(source, plan, options)
        return
    (table,) = source.compute_all(plan)
    positives = "prevalence" if "prevalence" in table.columns else pl.col("tp") + pl.col("fn")
    source.check_positives(found=bool(table.select(positives).sum().item()))
    name = kind.upper() if kind in ("roc", "pr", "det") else kind
    heading = f"{name} curve{sentences.name_groups([*source.group_types])}"
    # Below their chart the points of curves are not shown.
    shown = Shown(heading, table.select([]) if is_chart else table)

    def draw() -> list[Any]:
        if kind == "det":
            return [wroc.roc_chart(table, det=True, facet=source.facet)]
        drawn = given if own.drawn_from_roc else {}
        return [getattr(wroc, f"{kind}_chart")(table, facet=source.facet, **drawn)]

    show_report(Report(source, table, [shown], draw), options.output)


def _check_kind(kind: str, given: Mapping[str, object]) -> None:
    """Check that the options are those of the kind of curve."""
    for name in given:
        kinds = [other for other, row in CURVE_KINDS.items() if name in row.options]
        if kind not in kinds:
            flag = f"--{name.replace('_', '-')}"
            msg = f"{flag} applies to --kind {kinds[0]}; found {kind}"
            raise ValueError(msg)


def _show_aucs(source: Source, plan: pl.LazyFrame, options: ByGroups) -> None:
    """Show the AUCs with their limits, and draw ROC curves: with characters or as a chart."""
    # The curves need all rows at once, and are computed together with it.
    with Config(memory="none"):
        table, aucs = source.compute_all(plan, source.plan(wroc.summary, **options.limits))
    source.check_positives(found=bool(aucs["n_pos"].sum()))
    keys = sentences.list_before(aucs.schema, "auc")
    verdict = sentences.say_backwards(aucs, keys)
    shown = Shown(f"AUCs{sentences.name_groups(keys)}", aucs, keys, verdict or None)
    if options.output.output:

        def draw() -> list[Any]:
            return [wroc.roc_chart(table, facet=source.facet, summary=aucs)]

        show_report(Report(source, table, [shown], draw), options.output)
        return
    screen = options.output.screen
    text = write_text(shown.write_blocks(screen), screen.terminal)
    print_text(f"{text}\n\n{_draw_with_characters(table)}\n")
    source.say_values()


# The size of a drawing in characters, and what its curves are drawn with.
_WIDTH, _HEIGHT, _LETTERS = 61, 19, "abcdefghijklmnopqrstuvwxyz"


def _draw_with_characters(curves: pl.DataFrame) -> str:
    """Draw ROC curves with characters, those of the first 26 groups, and the diagonal."""
    keys, known = (
        sentences.list_before(curves.schema, "threshold"),
        curves.drop_nulls(["fpr", "tpr"]),
    )
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
        f"{letter} {sentences.name_place(dict(zip(keys, group, strict=True)), keys)}"
        for letter, group, _ in drawn
    ]
    names = f"{first_few(named, sentences.SEPARATOR, len(_LETTERS))}\n" if keys else ""
    return "\n".join([f"{names}tpr", *rows, f"  +{'-' * _WIDTH}", f"   0{'fpr':^{_WIDTH - 2}}1"])
