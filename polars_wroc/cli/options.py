"""Options of commands: those of the functions that they call, and those of files and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from polars_wroc.audits import new_york, new_york_result
from polars_wroc.audits.audit import audit
from polars_wroc.audits.audit_changes import audit_changes
from polars_wroc.audits.result import SUFFIXES
from polars_wroc.audits.tables import ReferenceKind
from polars_wroc.counts.score_counts import merge_counts, score_counts
from polars_wroc.curves.calibration_curve import calibration_curve
from polars_wroc.curves.roc_curve import roc_curve
from polars_wroc.files import outputs
from polars_wroc.groups.group_gaps import group_gaps
from polars_wroc.groups.impact_ratios import impact_ratios
from polars_wroc.groups.release_check import release_check
from polars_wroc.groups.rows_needed import rows_needed
from polars_wroc.groups.worst_segments import worst_segments
from polars_wroc.metrics.compare import compare
from polars_wroc.metrics.paired_changes import RELEASE_METRICS
from polars_wroc.metrics.summary import summary
from polars_wroc.thresholds.confusion_matrix import DEFAULT_METRICS
from polars_wroc.thresholds.threshold_metrics import threshold_metrics

# Suffixes of files that tables are written to.
TABLE_OR_CHART = (*outputs.TABLE_SUFFIXES, outputs.WORKBOOK, ".md", *outputs.CHART_SUFFIXES)


class CurveKind(NamedTuple):
    """A function that makes a curve, and the options that not all kinds have."""

    function: str
    options: tuple[str, ...] = ()
    # Whether its chart is drawn from the ROC curve, and whether there is only a chart.
    drawn_from_roc: bool = False
    only_chart: bool = False


# What `--kind` names; each has a chart.
CURVES = {
    "roc": CurveKind("roc_curve", ("level", "max_points", "band", "bins")),
    "pr": CurveKind("pr_curve"),
    "det": CurveKind("roc_curve", only_chart=True),
    "gain": CurveKind("roc_curve", only_chart=True),
    "cost": CurveKind("cost_curve", ("cost_fn", "cost_fp", "prevalence"), drawn_from_roc=True),
    "decision": CurveKind("decision_curve", ("level",)),
}


@dataclass(frozen=True)
class Command:
    """A command: the function whose arguments it takes, its options in order, and its help.

    ``texts`` are helps that differ from the common ones, ``required`` what must be given.
    """

    function: Callable[..., Any]
    options: str
    description: str
    usage: str
    does: str
    example: str
    texts: Mapping[str, str] = field(default_factory=dict)
    required: Sequence[str] = ("label", "score")
    suffixes: Sequence[str] = TABLE_OR_CHART


_COLUMNS = "--label L --score S"
_ROWS = "files progress label score pos_label frequency weight"
_DESIGN = "looks cluster strata fpc lonely replicate_weights"
_OUTPUT = "output format columns rows"
COMMANDS = {
    "audit": Command(
        audit,
        f"{_ROWS} counts attribute selected threshold intersections reference unknown"
        " min_rows margin favorable title note positive negative selected_word"
        f" rejected_word people group_words min_cell adjust fail_if level {_DESIGN} output format",
        "AUCs, decisions and gaps of segments, or decisions without a label, as a report",
        f"FILE... ({_COLUMNS} | --selected D) --attribute A",
        "write a report on sex and on ranges of age",
        "polars-wroc audit loans.csv --label repaid --score s --threshold 0.5 \\\n"
        "    --favorable selected --attribute sex --attribute 'age:18,30,50' -o report.html",
        {
            "label": "L: column of the labels; without it decisions alone are audited",
            "fail_if": "LIMIT: in any segment with enough rows: a metric and a column of the "
            "table, such as auc.gap>0.05 (in either direction), auc.gap<-0.05 (below the "
            "reference), auc.gap_high<-0.05 (significantly below it) or auc.value<0.7; of "
            "decisions also tpr.gap>0.1, impact_ratio.ratio_high<0.8 (the whole interval is) or "
            "demographic_parity_ratio.ratio<0.8. Begin with race: or race=black: for a place, and "
            "write tpr.verdict=different for a verdict",
        },
        required=("groups",),
        suffixes=SUFFIXES,
    ),
    "diff": Command(
        audit_changes,
        "before_after metric show adjust different_rows different_settings first_run_ok fail_if "
        f"{_OUTPUT}",
        "what changed between two audits of different rows",
        "BEFORE AFTER",
        "fail if a gap in AUC has grown by more than two points",
        "polars-wroc diff march.json april.json --fail-if 'auc_gap.growth>0.02'",
        {
            "metric": ": metric in the chart; default the one that changed most significantly",
            "fail_if": "LIMIT: in any segment with enough rows: auc_gap.growth>0.02 (by how much "
            "the size of the gap has grown), auc.gap<-0.02 (by how much the value has changed, "
            "after less before), or their limits, auc.gap_high<0 or auc_gap.gap_high<0 (with their "
            "sign), impact_ratio.gap<-0.1; write tpr.verdict=different for a verdict",
        },
        required=(),
    ),
    "impact": Command(
        impact_ratios,
        "files progress selected score frequency weight counts threshold attribute favorable"
        " reference unknown min_share intersections exact adjust fail_if"
        f" level {_DESIGN} {_OUTPUT}",
        "selection rates of categories divided by the highest, without a label",
        "FILE... --attribute A (--selected D | --score S --threshold T) --favorable F",
        "fail if the whole interval of an impact ratio is below four fifths",
        "polars-wroc impact hires.csv --selected hired --favorable selected \\\n"
        "    --attribute sex --attribute race --fail-if 'impact_ratio.ratio_high<0.8'",
        {
            "counts": ": the files are counts, not rows: they are added up and need no --score",
            "threshold": "T: scores of at least T are selected; with median, scores above the "
            "median",
            "reference": "R: what categories are compared with: highest, the one with the highest "
            "rate; or such as sex=m, the reference category of an attribute, repeatable; default "
            "highest",
            "fail_if": "LIMIT: in any category that is not left out: impact_ratio.ratio<0.8, "
            "impact_ratio.ratio_high<0.8 (the whole interval is), or another number of the table",
        },
        required=("groups",),
    ),
    "new-york": Command(
        new_york.new_york_summary,
        "files progress selected score frequency attribute source distribution_date audit_date"
        " unknown min_share justification title output format",
        "the summary of a bias audit that New York City asks employers to publish",
        "FILE... --attribute A (--selected D | --score S) --source TEXT --distribution-date DAY",
        "write the summary of decisions by sex, race and both",
        "polars-wroc new-york hires.csv --selected decision=hired \\\n"
        "    --attribute sex --attribute race --source 'All applications of 2025' \\\n"
        "    --distribution-date 2026-01-15 -o summary.html",
        {
            "score": "S: column of the tool's score: selected are those above the median",
            "min_share": "P: categories with smaller shares are left out of the ratios; 0: none",
        },
        required=("groups", "source", "distribution_date"),
        suffixes=new_york_result.SUFFIXES,
    ),
    "auc": Command(
        summary,
        f"{_ROWS} counts bins by diagnostics level {_DESIGN} {_OUTPUT}",
        "the AUC and other metrics of each group",
        f"FILE... {_COLUMNS}",
        "draw the AUC of each site with its interval",
        "polars-wroc auc loans.parquet --label repaid --score s --by site -o auc.svg",
    ),
    "compare": Command(
        compare,
        f"{_ROWS} by method adjust fail_if level {_DESIGN} {_OUTPUT}",
        "tests whether two or more scores have different AUCs on the same rows",
        f"FILE... {_COLUMNS} --score S",
        "compare a new score with the old one",
        "polars-wroc compare loans.parquet --label repaid --score old --score new",
        {
            "fail_if": "LIMIT: for any pair of scores: auc.gap_high<0 (the first is significantly "
            "worse), auc.gap<-0.02, or another number of the table",
        },
    ),
    "release": Command(
        release_check,
        "files progress key label old new pos_label frequency weight attribute intersections"
        " thresholds_of_both selected_of_both metrics_of_release margins net_benefit_at min_rows"
        f" adjust first_run_ok fail_if level {_DESIGN} {_OUTPUT}",
        "whether a new score is no worse than the old one on the same rows, in every segment",
        "FILE... --label L --old S --new S",
        "fail if the new score is significantly worse, in all rows or for a sex",
        "polars-wroc release validation.parquet --label repaid --old s1 --new s2 \\\n"
        "    --threshold 0.5 --attribute sex --fail-if 'any.verdict=worse' -o release.html",
        {
            "min_rows": "N: rows that a metric rests on, to be tested",
            "fail_if": "LIMIT: in all rows or any segment: auc.gap_high<0 (significantly lower), "
            "auc.gap_low<-0.02, tpr.verdict=worse, any.verdict=worse (of any metric), or "
            "'any.verdict!=no worse' (unless each metric that has a good side is shown to be no "
            "worse)",
        },
        required=("label", "old", "new"),
    ),
    "gaps": Command(
        group_gaps,
        f"{_ROWS} counts attribute threshold selected reference within intersections margin"
        f" min_rows metric adjust level {_DESIGN} {_OUTPUT}",
        "tests whether groups differ from a reference in AUC or in rates",
        f"FILE... {_COLUMNS} --attribute A",
        "compare the true positive rate of each site with that of the others",
        "polars-wroc gaps loans.parquet --label repaid --score s --attribute site \\\n"
        "    --threshold 0.5 --metric tpr",
        {"metric": ": metric that is printed and drawn, rates with decisions only; default auc"},
        required=("label", "score", "groups"),
    ),
    "size": Command(
        rows_needed,
        "table metric_of_size value prevalence share ratio half_width gap equivalent_within"
        f" no_worse_by changed power level tests deff {_OUTPUT}",
        "how many rows a width, a gap, an equivalence or a margin needs",
        "[FILE] TARGET",
        "ask how many positives show that tpr is equivalent within 5 points",
        "polars-wroc size audit.json --metric tpr --equivalent-within 0.05",
        {"level": "P: confidence level; an audit has its own", "prevalence": "P: of positives"},
        required=(),
        suffixes=TABLE_OR_CHART[: -len(outputs.CHART_SUFFIXES)],
    ),
    "search": Command(
        worst_segments,
        f"{_ROWS} counts attribute searched threshold selected favorable depth min_rows top"
        " redundant level cluster strata fpc lonely output format columns rows",
        "searches all combinations of attributes for segments that are significantly worse",
        f"FILE... {_COLUMNS} --attribute A --attribute B...",
        "find the combinations in which fewest of those who repaid are selected",
        "polars-wroc search loans.parquet --label repaid --score s --attribute site \\\n"
        "    --attribute sex --attribute age:30,50 --threshold 0.5 --favorable selected",
        {"min_rows": "N: rows that a segment needs, and those outside it, to be examined"},
        required=("groups",),
    ),
    "thresholds": Command(
        threshold_metrics,
        f"{_ROWS} counts by thresholds prevalence per_group min_rows metrics"
        f" level {_DESIGN} {_OUTPUT}",
        "rates at thresholds, or at one that a rule chooses",
        f"FILE... {_COLUMNS} --threshold T...",
        "find the lowest threshold that at most a tenth of the negatives reach",
        "polars-wroc thresholds loans.parquet --label repaid --score s --threshold max-fpr=0.1",
        {
            "prevalence": "P: prevalence in the population that the rates are for",
            "min_rows": "N: rows of each class without which the rates of a group are marked",
        },
    ),
    "calibrate": Command(
        calibration_curve,
        f"{_ROWS} counts by curve_bins strategy smooth clip level {_DESIGN} {_OUTPUT}",
        "whether scores are probabilities: observed rates in bins, and the calibration slope",
        f"FILE... {_COLUMNS}",
        "show the calibration of each sex in bins of equal weight",
        "polars-wroc calibrate loans.parquet --label repaid --score s --by sex --strategy quantile",
    ),
    "curve": Command(
        roc_curve,
        f"{_ROWS} counts bins by kind max_points band cost_fn cost_fp prevalence"
        f" level {_DESIGN} {_OUTPUT}",
        "ROC and other curves, as a drawing of characters, a table or a chart",
        f"FILE... {_COLUMNS}",
        "draw the precision-recall curve of each site",
        "polars-wroc curve loans.parquet --label repaid --score s --by site --kind pr -o pr.png",
    ),
    "counts": Command(
        score_counts,
        f"{_ROWS} by bins output",
        "counts of rows by score, which add up and can replace the rows",
        "FILE... --score S -o FILE",
        "count the rows of a day by sex",
        "polars-wroc counts monday.csv --label repaid --score s --by sex -o monday.parquet",
        {
            "label": "L: column of the labels; without it the counts have impact ratios only",
            "bins": "N: count in about N bins of scores instead of by score",
        },
        required=("score", "output"),
        suffixes=outputs.TABLE_SUFFIXES,
    ),
    "merge": Command(
        merge_counts,
        "files progress bins output",
        "the sum of the counts in several files",
        "FILE... -o FILE",
        "add up the counts of a week",
        "polars-wroc merge monday.parquet tuesday.parquet -o week.parquet",
        {"bins": "N: use about N bins of scores, unless the counts have wider ones"},
        required=("output",),
        suffixes=outputs.TABLE_SUFFIXES,
    ),
}


# Why a command does not have an option that others have.
_NO_LABEL = "{} is about how often people are selected, and needs no label"
_TWO_SCORES = "the scores of compare are --score, given once for each"
REMARKS: dict[tuple[str, str], str] = {
    ("impact", "label"): _NO_LABEL.format("impact"),
    ("new-york", "label"): _NO_LABEL.format("new-york"),
    ("release", "score"): "the scores of release are --old and --new, since their order matters",
    ("compare", "old"): _TWO_SCORES,
    ("compare", "new"): _TWO_SCORES,
}
_GROUP = "repeatable. Numbers are cut into ranges by such as age:18,30,50, which has <18, 18-29, "
_GROUP += "30-49 and 50+; dates and texts such as 2026-01-31 into periods by day:1mo. A column of "
_GROUP += "such a name is taken as it is"
_THRESHOLD = "T: scores of at least T are selected; or median, or a rule: youden, closest-topleft, "
_THRESHOLD += "max-accuracy, max-fpr=R, min-tpr=R, max-selection-rate=R, or such as "
_THRESHOLD += "least-cost:fn=5,fp=1"
# What help groups options by; those of tests are all others.
TESTS = "Tests"
GROUPS = {
    "Input": "files before_after table key label old new score pos_label frequency weight counts"
    " bins prevalence first_run_ok different_rows different_settings",
    "Groups": "attribute by intersections within reference unknown min_share min_rows min_cell",
    "Decisions": "selected selected_of_both threshold thresholds thresholds_of_both favorable"
    " per_group",
    TESTS: "",
    "Survey": "cluster strata fpc lonely replicate_weights",
    "Output": "kind curve_bins strategy smooth clip max_points band cost_fn cost_fp diagnostics"
    " metrics title note positive negative selected_word rejected_word people group_words source"
    " distribution_date audit_date justification show columns rows output format progress",
}
# The name of the value, and what is said of an option.
TEXTS = {
    "files": "FILE: Parquet, Arrow, CSV or NDJSON; glob, folder, URL",
    "progress": ": do not show time and rows on the terminal during long work",
    "label": "L: column of the labels",
    "score": "S: column of a score; higher means more positive; repeatable",
    "pos_label": "X: positive value of other labels than 0 and 1, such as yes",
    "frequency": "N: column of weights that count rows: how many a row is",
    "weight": "W: column of weights: how much of a population a row represents",
    "counts": ": the files are counts, not rows: they are added up and need no --label and --score",
    "bins": "N: use about N bins of scores: fast, in little memory, with bounds of each AUC",
    "attribute": f"A: an attribute, such as sex, whose segments are compared; {_GROUP}",
    "by": f"A: a group column; with several, each combination of their values is a group; {_GROUP}",
    "selected": "D: column of recorded decisions, true and false or 0 and 1; or such as "
    "decision=hired, the value of those who are selected",
    "threshold": _THRESHOLD,
    "thresholds": f"{_THRESHOLD}; numbers may be repeated",
    "intersections": "only: compare the combinations of all attributes too, or only these",
    "reference": "R: what segments are compared with: one of "
    f"{', '.join(get_args(ReferenceKind))}; or such as sex=m, the reference segment of an "
    "attribute, repeatable; default rest",
    "old": "S: column of the old score; higher means more positive",
    "new": "S: column of the new score, with --key in the second file",
    "key": "K: there are two files: that of the old score and of all else, and that of the new "
    "score; rows are matched by this column, in which each has a value of its own",
    "thresholds_of_both": "T: scores of at least T are selected; or old=T and new=T",
    "selected_of_both": "D: column of recorded decisions, as old=D and new=D: true and false or "
    "0 and 1; or such as old=decision=hired, the value of those who are selected",
    "metrics_of_release": f"LIST: metrics, out of {', '.join(RELEASE_METRICS)}; a chart that is no "
    "page is of the first",
    "margins": "M: how much worse is still no worse; or such as tpr=0.02, repeatable; default 0.01 "
    "for the AUC and rates",
    "net_benefit_at": "P: threshold probability of the net benefit",
    "table": "FILE: the JSON of an audit, or a table of gaps or of a release; without it there is "
    "one row from assumptions",
    "metric_of_size": "M: auc, a rate such as tpr, or oe_ratio; of a table all by default",
    "value": "V: the expected value, of two that are compared that of the reference",
    "share": "S: the segment's share of all rows",
    "ratio": "R: rows of the reference for each of the segment",
    "half_width": "W: target: half the width of the interval of a value",
    "gap": "G: target: a gap below the reference that is found",
    "equivalent_within": "M: target: equal values are shown to be equivalent within this margin",
    "no_worse_by": "M: target: an equally good new score is shown to be no worse by this margin",
    "changed": "S: share of rows whose decision changes, with --no-worse-by",
    "power": "P: probability of what the target shows",
    "tests": "N: number of tests that share the error; default that of the table",
    "deff": "D: how many times more rows a design needs",
    "min_rows": "N: rows of each class that a segment needs to be tested",
    "margin": "M: gaps within this do not matter to the verdicts",
    "favorable": ": which decision is good for a person, if any; needed where there are decisions",
    "source": "TEXT: where the data come from, and what they are; it is published",
    "distribution_date": "DAY: when use of the tool began, such as 2026-01-15",
    "audit_date": "DAY: when the audit was made; default today",
    "justification": "TEXT: why the auditor leaves out small categories",
    "title": "TEXT: title of the report or summary",
    "note": "TEXT: what readers of the report should know about its rows",
    "positive": "TEXT: what people of the positive class are, such as repaid",
    "negative": "TEXT: what people of the negative class are, such as 'in default'",
    "selected_word": "TEXT: what people are who are selected, such as hired",
    "rejected_word": "TEXT: what people are who are not selected, such as turned down",
    "people": "TEXT: what the rows are, in the plural, such as applicants",
    "group_words": "A=TEXT: what the groups of an attribute are called, with {} for the value, "
    "such as 'region=applicants in {}'; repeatable",
    "min_cell": "N: leave out numbers of fewer rows, and what would give them away",
    "adjust": ": how p-values are adjusted for the number of tests",
    "level": "P: confidence level",
    "looks": "N: limits hold at all looks at growing data, and are tightest when N rows are seen",
    "cluster": "C: column of clusters or sampling units: rows with the same value belong together",
    "strata": "H: column of the strata of a survey",
    "fpc": "F: column of the finite population correction: the proportion of a stratum's sampling "
    "units that was sampled, or their number in the population",
    "lonely": ": what the only sampling unit of a stratum adds to a variance: null, the default, "
    "makes it unknown; certainty, nothing; adjust, its squared distance from the mean of all units",
    "replicate_weights": "R: columns of replicate weights and how they were made: such as "
    "'rep_*:kind=jk2', or a,b,c:kind=fay,rho=0.3,df=60; df are the degrees of freedom: sampling "
    "units less strata",
    "format": ": format of a file whose name does not end in one, and of what -o - prints",
    "columns": "LIST: columns that are printed, such as n,auc,auc_low, or all; default the first "
    "that fit",
    "rows": "N: most rows that are printed, or all; default what a terminal shows, elsewhere all",
    "searched": ": metric that is compared; rates need decisions, the others probabilities",
    "depth": "N: most attributes that are combined",
    "top": "N: most segments that are shown",
    "redundant": ": also show segments that one above them explains",
    "show": ": the changes (gap), or the values after, in the chart; default gap for metrics such "
    "as tpr_gap, value for the others",
    "different_rows": ": the audits are of different rows, although all segments have the same "
    "numbers of rows and positives and the same weights",
    "different_settings": ": compare audits with another label, threshold, favorable decision, "
    "reference and the like all the same",
    "first_run_ok": ": succeed, and say so, if there is no file to compare with yet",
    "fail_unjudged": ": exit with 3 if a condition of --fail-if cannot be judged in some segment",
    "unknown": "V: which categories are unknown: exclude, those without a value; a value such as "
    "'' or 'not stated', which is unknown too, repeatable; keep, none; default exclude",
    "min_share": "P: categories with a smaller share of the weight are shown, not judged",
    "exact": ": the test of small categories",
    "diagnostics": ": add columns that say what each interval rests on",
    "method": ": delong for DeLong's test as other software has it, which errs where few rows "
    "are ranked differently; default a test that holds there too",
    "within": "A: column of strata such as jobs or sites, in which groups are compared; repeatable",
    "prevalence": "P: prevalence in the population that the cost is for",
    "per_group": ": let the rule choose a threshold in each group",
    "metrics": f"LIST: metrics such as tpr,lift, or all; default {','.join(DEFAULT_METRICS)}",
    "curve_bins": "N: bins of the curve, which are printed then; default 10",
    "clip": "C: for the slope, take scores of 0 and 1, or closer to them than C, as C and 1 - C; "
    "default they are left out",
    "smooth": ": add a smooth curve with its limits; not of counts",
    "strategy": ": bins of equal width, or of equal weight; default quantile, with a design or "
    "--looks uniform",
    "kind": ": which curve; default roc",
    "max_points": "N: at most N points per curve",
    "band": ": confidence band around the curve",
    "cost_fn": "C: cost of a false negative, for --kind cost",
    "cost_fp": "C: cost of a false positive, for --kind cost",
}
