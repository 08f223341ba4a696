"""The commands, run with parsed options."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import polars as pl

from polars_wroc.audits import change_pages, new_york_result
from polars_wroc.audits.audit_changes import (
    Changes,
    changes_between,
    read_audit,
)
from polars_wroc.audits.gates import (
    OF_CHANGES,
    OF_IMPACT,
    OF_PAIRS,
    OF_RELEASE,
    Gate,
    Judged,
    judged,
    judged_pairs,
    of_audit,
    read_gate,
)
from polars_wroc.audits.hints import (
    explain_median,
    hint_unknown,
    list_missing,
    list_unknown,
    say_missing_rows,
    write_unknown_flags,
)
from polars_wroc.audits.new_york import new_york_summary
from polars_wroc.audits.page import write_document
from polars_wroc.audits.result import Audit
from polars_wroc.audits.sections import write_summary
from polars_wroc.audits.tables import audited_files
from polars_wroc.cli import arguments, process, release, results, sources, tables
from polars_wroc.cli.arguments import groups_of
from polars_wroc.cli.options import CURVES
from polars_wroc.cli.process import refuse, screen_of
from polars_wroc.cli.sources import Source
from polars_wroc.config import Config
from polars_wroc.documents.text_writer import Terminal, write_text
from polars_wroc.files import outputs
from polars_wroc.files.scan import scan_files
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA, IMPACT_RATIO, rated_ratios
from polars_wroc.groups.impact_ratios import impact_ratios
from polars_wroc.groups.release_check import release_check
from polars_wroc.groups.rows_needed import rows_needed
from polars_wroc.inputs.columns import AUDIT_KEYS, UNKNOWN_CATEGORY, check_positives
from polars_wroc.inputs.spellings import say_near_equal
from polars_wroc.looks import Looks
from polars_wroc.namespaces import Counts
from polars_wroc.queries import collect, collect_all
from polars_wroc.thresholds.rules import Rule


def _given(options: argparse.Namespace, names: str) -> dict[str, Any]:
    """Return the options that are arguments of the same names."""
    return {name: getattr(options, name) for name in names.split()}


def _gates(options: argparse.Namespace, of: Judged) -> list[Gate]:
    return [read_gate(text, of) for text in options.fail_if]


def _computed(options: argparse.Namespace, source: Source, name: str, **given: Any) -> pl.DataFrame:
    """Return the table of a function of the rows in the files, and say what these lack."""
    plan = source.function(name)(**given, **arguments.uncertainty_of(options))
    if name == "summary":
        # It has a column of these numbers.
        return collect(plan)
    table, missing = collect_all([plan, source.missing])
    _say_missing(missing, options)
    return table


def _say_missing(missing: pl.DataFrame, options: argparse.Namespace) -> None:
    """Say how many rows lack which values, and what these rows are left out of."""
    left_out = "Rows that lack one are left out."
    if options.command == "gaps" and not options.counts:
        left_out = "Rows without a label count in selection rates alone, the others not at all."
    for sentence in list_missing(missing):
        process.complain(f"{sentence} {left_out}")


def _check_positives(options: argparse.Namespace, source: Source, *, found: bool) -> None:
    """Check that there are positives, without which a result may hold nothing."""
    found = found or bool(collect(source.function("summary")())["n_pos"].sum())
    check_positives(options.pos_label, found=found)


def run_audit(options: argparse.Namespace) -> None:
    """Audit segments; raise if a gate fails."""
    decides = options.threshold is not None or options.selected is not None
    arguments.require_favorable(options, ("threshold", "selected"))
    labeled = options.counts or options.label is not None
    of = of_audit(decides=decides, ratios=options.favorable != "neither", labeled=labeled)
    gates = _gates(options, of)
    names = "threshold intersections min_rows adjust margin favorable min_cell"
    given = _given(options, names)
    given["reference"] = arguments.reference_of(options, "rest")
    given["text"] = arguments.read_text_options(options)
    source = sources.source_of(options)
    given["unknown"] = arguments.unknown_of(options, source.groups)
    audit = source.function("audit")
    result = audit(**given, **arguments.uncertainty_of(options))
    if options.selected is not None:
        arguments.check_selected(options, result.segments["n_selected"].sum())
    described = {".json", *results.TOLD} & {each.suffix for each in options.outputs}
    files = audited_files(options.files, contents=bool(described))
    run = replace(result.run, command=options.command_line, files=files)
    judgement = judged(gates, result.table)
    result = replace(result, run=run, gates=judgement.gates)
    results.present(judgement, lambda: _show_audit(result, options), options)


def run_auc(options: argparse.Namespace) -> None:
    """Print or write the summary of each group."""
    source = sources.source_of(options)
    table = _computed(options, source, "summary", diagnostics=options.diagnostics)
    check_positives(options.pos_label, found=bool(table["n_pos"].sum()))
    shown = partial(tables.aucs_shown, table)
    results.show_table("gap_chart", table, options, shown, show="value")


def run_curve(options: argparse.Namespace) -> None:
    """Write curves as a table or a chart."""
    _check_kind(options)
    function, names, drawn_from_roc, only_chart = CURVES[options.kind]
    if only_chart and not results.is_chart(options):
        refuse(f"--kind {options.kind} is only drawn: -o FILE with .html, .png or .svg")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    # The source has the bins of scores.
    chosen = {name: value for name, value in given.items() if name != "bins"}
    limited = options.band or options.kind == "decision"
    design = arguments.design_of(options) if limited else {}
    source = sources.source_of(options)
    on_terminal = _is_drawn_on_terminal(options)
    if drawn_from_roc and results.is_chart(options):
        curves = source.function("roc_curve")()
    else:
        curves = source.function(function)(**chosen, **design)
    if options.kind != "roc" or not (on_terminal or results.is_chart(options)):
        table, missing = collect_all([curves, source.missing])
        _say_missing(missing, options)
        positives = "prevalence" if "prevalence" in table.columns else pl.col("tp") + pl.col("fn")
        _check_positives(options, source, found=bool(table.select(positives).sum().item()))
        shown = partial(tables.curve_shown, table, options, [*source.groups])
        # The level is that of the table.
        drawn = {name: value for name, value in chosen.items() if name != "level"}
        drawn |= {"facet": source.facet}
        chart = "roc_chart" if options.kind == "det" else f"{options.kind}_chart"
        drawn |= {"det": True} if options.kind == "det" else {}
        results.show_table(chart, table, options, shown, **drawn)
        return
    # The curves need all rows at once, and are computed together with it.
    with Config(memory="none"):
        summary = source.function("summary")(**arguments.uncertainty_of(options))
    table, aucs = collect_all([curves, summary])
    check_positives(options.pos_label, found=bool(aucs["n_pos"].sum()))
    if on_terminal:
        text = tables.write_shown_tables(tables.aucs_shown(aucs), screen_of(options))
        results.print_result(f"{text}\n\n{tables.drawn_roc(table)}\n", options)
        return
    drawn = {"facet": source.facet, "summary": aucs}
    results.show_table("roc_chart", table, options, partial(tables.aucs_shown, aucs), **drawn)


def _is_drawn_on_terminal(options: argparse.Namespace) -> bool:
    """Whether ROC curves are drawn with characters: unless their table is asked for."""
    asked = (options.output, options.rows, options.columns, options.band)
    return options.kind == "roc" and all(each is None for each in asked)


def _check_kind(options: argparse.Namespace) -> None:
    """Check that the options are those of the kind of curve."""
    own = CURVES[options.kind].options
    for kind, row in CURVES.items():
        for name in row.options:
            # The level has a value by default.
            if name not in (*own, "level") and getattr(options, name) is not None:
                refuse(f"{options.flags[name]} applies to --kind {kind}; found {options.kind}")
    design = [name for name in arguments.DESIGN if getattr(options, name)]
    limited = options.band or options.kind == "decision"
    drawn = _is_drawn_on_terminal(options) or results.is_chart(options)
    if design and not (limited or (options.kind == "roc" and drawn)):
        flag, where = options.flags[design[0]], "a ROC chart, --band pointwise and --kind decision"
        refuse(f"{flag} applies to {where}, which have limits; found --kind {options.kind}")


def run_counts(options: argparse.Namespace) -> None:
    """Write the counts of rows by score."""
    _write_counts(sources.counted(options), options)


def run_merge(options: argparse.Namespace) -> None:
    """Write the sum of the counts in all files."""
    _write_counts(sources.merged(options).table(), options)


def _write_counts(counts: pl.LazyFrame, options: argparse.Namespace) -> None:
    results.save(options, partial(outputs.sink_table, counts))
    results.say_written(options)


def _show_audit(result: Audit, options: argparse.Namespace) -> None:
    written = [each for each in options.outputs if each.output]
    for each in written:
        results.save(each, result.save)
    if "-" not in [each.output for each in written]:
        screen = screen_of(options)
        text = write_text(write_summary(result), Terminal(screen.width, screen.colored))
        results.print_result(f"{text}\n", options)
    for each in written:
        results.say_written(each)


def run_diff(options: argparse.Namespace) -> None:
    """Print or write the changes, or draw those of a metric; raise if a gate fails."""
    given = [name for name, value in _given(options, "metric show").items() if value is not None]
    if given and not results.is_chart(options):
        refuse(f"--{given[0]} applies to a chart: -o FILE with one of .html, .png, .svg")
    gates = _gates(options, OF_CHANGES)
    if arguments.is_first_run(options, partial(read_audit, "after")):
        return
    before, after = options.files
    changes = changes_between(
        before,
        after,
        options.adjust,
        different_rows=options.different_rows,
        different_settings=options.different_settings,
    )
    judgement = judged(gates, changes.table)
    results.present(judgement, partial(_show_changes, changes, options), options)


def _show_changes(changes: Changes, options: argparse.Namespace) -> None:
    """Print or write the changes: as a table, a chart or a page."""
    if options.output is None:
        screen = screen_of(options)
        text = write_text(change_pages.lay_out_notable_changes(changes, screen), screen.terminal)
        results.print_result(f"{text}\n", options)
        return
    if options.suffix in results.PAGES:
        _save_changes(changes, options)
        return
    metric = changes.most_changed(options.metric)[0]
    drawn: dict[str, Any] = {
        "metric": metric,
        "show": options.show or change_pages.choose_shown(metric),
    }
    before, after = (Path(name).name for name in options.files)
    shown = partial(tables.changes_shown, changes, (before, after))
    results.show_table("gap_chart", changes.table, options, shown, **drawn)


def _save_changes(changes: Changes, options: argparse.Namespace) -> None:
    """Write a page of the changes; HTML has charts."""
    before, after = (Path(name).name for name in options.files)
    charts = []
    if options.suffix == ".html":
        charts = change_pages.draw_changes(changes, options.metric, options.show)
    run = tables.run_of(options)
    document = change_pages.lay_out_changes(changes, (before, after), run, charts)
    title = change_pages.title_changes((before, after))
    results.save_text_result(write_document(document, title, options.suffix), options)


def run_impact(options: argparse.Namespace) -> None:
    """Print or write impact ratios; raise if a gate fails."""
    _check(options)
    gates = _gates(options, OF_IMPACT)
    reference = _reference_of_impact(options)
    given = _given(options, "threshold favorable min_share intersections exact adjust")
    given |= arguments.uncertainty_of(options) | {"reference": reference}
    frame: Any
    if options.counts:
        frame = sources.merged(options)
        groups, function = frame.groups, Counts(frame, eager=False).impact_ratios
    else:
        # Read once for both tables.
        groups = frame = sources.watched(options.files, options.progress).cache()
        given |= arguments.decisions_of(options, frame)
        function = partial(impact_ratios, frame)
    given["unknown"] = arguments.unknown_of(options, arguments.group_types(options, groups))
    given["attributes"] = groups_of(options, groups)
    table, counts = collect_all([function(**given), sources.decisions(frame, options)])
    arguments.check_selected(options, counts["selected"].sum())
    ratios = rated_ratios(table)
    notes = _notes(ratios, counts, options)
    shown = partial(tables.impact_shown, table, ratios, notes)

    def show() -> None:
        drawn: dict[str, Any] = {"metric": IMPACT_RATIO, "show": "ratio"}
        results.show_table("gap_chart", _written(table, options), options, shown, **drawn)
        if options.output:
            for note in notes:
                process.complain(note)

    results.present(judged(gates, table), show, options)


def _written(table: pl.DataFrame, options: argparse.Namespace) -> pl.DataFrame:
    """Name the unknown category where it would be an empty cell."""
    if options.suffix not in (".csv", outputs.WORKBOOK):
        return table
    return table.with_columns(pl.col(AUDIT_KEYS[1]).fill_null(UNKNOWN_CATEGORY))


def _notes(table: pl.DataFrame, counts: pl.DataFrame, options: argparse.Namespace) -> list[str]:
    """Say what a reader of the ratios should know about the rows and their categories."""
    what = "label, score or weight" if options.counts else "decision"
    if options.weight:
        what += " or weight"
    notes = [say_missing_rows(counts, what)]
    if options.threshold == "median":
        notes.append(explain_median(counts))
    if options.unknown != ["keep"]:
        given = [] if options.unknown == ["exclude"] else options.unknown
        notes += hint_unknown(table, f"give {write_unknown_flags(list_unknown(table, given))}")
    groups = table.filter(~pl.col("attribute").str.contains(CROSSED, literal=True))
    for name, values in groups.drop_nulls("segment").group_by("attribute").agg("segment").rows():
        notes += say_near_equal(name, values)
    return [note for note in notes if note]


def _check(options: argparse.Namespace) -> None:
    """Check that decisions are given in one way."""
    ways = ("selected", "score", "threshold")
    given = [f"--{name}" for name in ways if getattr(options, name) is not None]
    if options.counts and given != ["--threshold"]:
        refuse("impact needs --threshold with --counts")
    if not options.counts and given not in (["--selected"], ["--score", "--threshold"]):
        found = " and ".join(given) or "none of them"
        refuse(f"impact needs --selected, or --score and --threshold; found {found}")
    arguments.require_favorable(options, ("selected", "threshold"))


def _reference_of_impact(options: argparse.Namespace) -> str | dict[str, str]:
    reference = arguments.reference_of(options, "highest")
    if isinstance(reference, str) and reference != "highest" and len(options.groups) > 1:
        msg = (
            "--reference must be highest or such as sex=m where there are several attributes; "
            f"found {reference}"
        )
        refuse(msg)
    return reference


def run_new_york(options: argparse.Namespace) -> None:
    """Print or write the summary of a bias audit for New York City."""
    frame = sources.watched(options.files, options.progress)
    given = _given(options, "source distribution_date audit_date min_share justification title")
    given |= arguments.decisions_of(options, frame)
    given["unknown"] = arguments.unknown_of(options, arguments.group_types(options, frame))
    summary = new_york_summary(frame, **given)
    arguments.check_selected(options, summary.table["n_selected"].sum())
    # It is published with the numbers.
    decisions = " ".join(arguments.describe_chosen_values(frame, options))
    spellings = [
        text
        for name, values in summary.table.group_by("attribute").agg("segment").rows()
        for text in say_near_equal(name, [each for each in values if each is not None])
    ]
    summary = replace(summary, decisions=decisions, hints=[*summary.hints, *spellings])
    if options.output is None:
        text = write_text(new_york_result.lay_out_new_york(summary), screen_of(options).terminal)
        results.print_result(f"{text}\n", options)
    else:
        if options.suffix in results.TOLD:
            summary = replace(summary, run=tables.run_of(options))
        results.save(options, summary.save)
        results.say_written(options)
    for hint in summary.hints:
        process.complain(arguments.in_options(hint, options))


_IN_WORDS = {"rest": "the rest", "overall": "all rows", "best": "the best group"}


def run_compare(options: argparse.Namespace) -> None:
    """Test the differences between the AUCs of scores."""
    gates = _gates(options, OF_PAIRS)
    source = sources.source_of(options)
    table = _computed(options, source, "compare", **_given(options, "method adjust"))
    _check_positives(options, source, found=bool(table["value"].count()))
    shown = partial(tables.pairs_shown, table, options.level)
    show = partial(results.show_table, "gap_chart", table, options, shown)
    results.present(judged(gates, judged_pairs(table)), show, options)


def run_release(options: argparse.Namespace) -> None:
    """Check a new score against the old one; raise if a gate fails."""
    gates = _gates(options, OF_RELEASE)
    if arguments.is_first_run(options, partial(release.check_new, options)):
        return
    rows = release.read_release(options)
    given = _given(options, "intersections metrics net_benefit_at min_rows adjust")
    given |= {"margin": release.margins_of(options), **arguments.uncertainty_of(options)}
    table = collect(release_check(**rows, **given))
    check_positives(options.pos_label, found=bool(table.filter(metric="auc")["n"].sum()))
    shown = release.release_shown(table, rows)
    show = partial(release.show_release, table, shown, options)
    results.present(judged(gates, table), show, options)


def run_gaps(options: argparse.Namespace) -> None:
    """Test the gaps between groups and their reference."""
    metric: str = options.metric or "auc"
    if options.metric and options.output and not results.is_read(options):
        msg = f"--metric applies to what is printed and to charts; {options.output} has all metrics"
        refuse(msg)
    if metric != "auc" and options.threshold is None and options.selected is None:
        refuse(f"--metric {metric} needs --threshold or --selected; found none of them")
    source = sources.source_of(options)
    given = _given(options, "threshold within intersections margin min_rows adjust")
    given["reference"] = arguments.reference_of(options, "rest")
    table = _computed(options, source, "group_gaps", **given)
    _check_positives(options, source, found=bool(table.filter(metric="auc")["value"].count()))
    if options.selected is not None:
        arguments.check_selected(options, table.filter(metric="selection_rate")["value"].sum())
    reference = " and ".join(_IN_WORDS.get(each, each) for each in options.reference or ["rest"])
    shown = partial(tables.gaps_shown, table, options.metric, reference, options.margin)
    results.show_table("gap_chart", table, options, shown, metric=metric)


def run_size(options: argparse.Namespace) -> None:
    """Count the rows that a target needs, from assumptions or a table."""
    names = [name for name in signature(rows_needed).parameters if name != "table"]
    given: dict[str, Any] = _given(options, " ".join(names))
    table: pl.DataFrame | pl.LazyFrame | None = None
    if len(options.files) > 1:
        refuse(f"size takes one FILE; found {len(options.files)}")
    if options.files and options.files[0].endswith(".json"):
        audit = read_audit("FILE", options.files[0])
        table, given["level"] = audit.table, audit.settings.level
    elif options.files:
        read = scan_files(options.files)
        types = {name: COMPARISON_SCHEMA.get(name) for name in read.collect_schema()}
        # Text files do not know the types of empty columns.
        table = read.cast({name: dtype for name, dtype in types.items() if dtype}, strict=False)
    needed = rows_needed(table, **given)
    shown = partial(tables.size_shown, needed, named=bool(options.files))
    results.show_table("gap_chart", needed, options, shown)


def run_search(options: argparse.Namespace) -> None:
    """Search for the segments that are significantly worse."""
    arguments.require_favorable(options, ("threshold", "selected"))
    source = sources.source_of(options)
    given = _given(options, "threshold metric favorable depth min_rows top redundant")
    table = _computed(options, source, "worst_segments", **given)
    if options.label and options.selected is None:
        _check_positives(options, source, found=options.metric == "tpr" and table["n"][0] > 0)
    if options.selected is not None:
        arguments.check_selected(options, table["value"][0])
    shown = partial(tables.search_shown, table, options.metric)
    known = {"metric": options.metric}
    results.show_table("gap_chart" if table[1:].height else "", table, options, shown, **known)


def run_thresholds(options: argparse.Namespace) -> None:
    """Measure decisions at thresholds, or at one that a rule chooses."""
    source = sources.source_of(options)
    table, missing = collect_all([_decisions(options, source), source.missing])
    _say_missing(missing, options)
    found = table.select((pl.col("tp") + pl.col("fn") > 0).any()).item()
    _check_positives(options, source, found=found)
    shown, drawn, known = partial(tables.decisions_shown, table), None, dict[str, Any]()
    if results.is_chart(options):
        # The chart has the rates at all thresholds, and a line at the one that was chosen.
        everywhere = source.function("threshold_metrics")(metrics=options.metrics)
        drawn = collect(everywhere)
        known = {"threshold": _only_threshold(table)}
    results.show_table("rates_chart", table, options, shown, drawn, **known)


def run_calibrate(options: argparse.Namespace) -> None:
    """Compare scores with the observed rates."""
    source = sources.source_of(options)
    limits = arguments.uncertainty_of(options)
    bins = 10 if options.curve_bins is None else options.curve_bins
    # Bins that move with the sample have no limits by design.
    fixed = "design" in limits or isinstance(options.level, Looks)
    strategy = options.strategy or ("uniform" if fixed else "quantile")
    if options.smooth and options.counts:
        refuse("--smooth needs single rows, which --counts are not")
    given = {"bins": bins, "strategy": strategy, **limits}
    given |= {"smooth": True} if options.smooth else {}
    plans = [source.function("calibration_curve")(**given)]
    if not options.output or options.suffix in results.TOLD:
        plans.append(source.function("calibration_summary")(**limits, clip=options.clip))
        if not isinstance(options.level, Looks):
            plans.append(source.function("calibration_test")(**limits))
    table, missing, *others = collect_all([plans[0], source.missing, *plans[1:]])
    _say_missing(missing, options)
    found = table.select((pl.col("observed_rate") > 0).any()).item()
    _check_positives(options, source, found=bool(found))
    slopes = others[0] if others else table
    ranges = tables.of_ranges(others[1], options.level) if others[1:] else ""
    asked = _given(options, "output curve_bins strategy columns rows").values()
    binned = options.smooth or any(value is not None for value in asked)
    shown = partial(
        tables.calibration_shown, table, slopes, ranges, binned=binned, clip=options.clip
    )
    known: dict[str, Any] = {"facet": source.facet}
    results.show_table("calibration_chart", table, options, shown, **known)


def _decisions(options: argparse.Namespace, source: Source) -> pl.LazyFrame:
    """Plan the rates at given thresholds, or at those that a rule chooses."""
    given = options.threshold or []
    chosen: dict[str, Any]
    by_rule = any(not isinstance(each, float) for each in given)
    if not given or (by_rule and len(given) > 1):
        found = "none" if not given else "a rule and other thresholds"
        refuse(f"thresholds needs --threshold, with numbers or one rule; found {found}")
    if isinstance(given[0], Rule):
        if options.prevalence is not None:
            refuse("--prevalence must not come with a rule in --threshold: least-cost:prevalence=P")
        chosen = {"threshold": given[0], "per_group": options.per_group}
    elif options.per_group:
        refuse("--per-group must come with a rule in --threshold; found a number")
    else:
        chosen = {"threshold": given[0] if by_rule else given, "prevalence": options.prevalence}
    chosen |= _given(options, "metrics min_rows") | arguments.uncertainty_of(options)
    table: pl.LazyFrame = source.function("threshold_metrics")(**chosen)
    return table


def _only_threshold(table: pl.DataFrame) -> float | None:
    """Return the finite threshold of the table, if there is only one."""
    chosen = table["threshold"].drop_nulls().unique().to_list()
    return chosen[0] if len(chosen) == 1 and math.isfinite(chosen[0]) else None
