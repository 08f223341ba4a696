"""The calls whose numbers `kept_numbers.py` keeps and checks.

The name of a call is the function and then what is special about the call. When an argument gets
another name, only the text of the call changes. Tables are compared by the names of calls, tables
and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from kept_data import DATA, REPLICATES

import polars_wroc as wroc

# What is called a difference of a call that fails; patterns have no space.
CALL = "the-call"


@dataclass(frozen=True)
class Decision:
    """Why columns of calls differ, and how much they may.

    ``calls`` are patterns of the name and the text of a call. Numbers may differ by ``at_most``
    relatively, and nulls, texts and counts in so many ``rows``.
    """

    calls: Sequence[str]
    columns: Sequence[str]
    reason: str
    at_most: float = 0.0
    rows: int = 0

    def text(self) -> str:
        """Return the calls and columns, the reason, and what may differ."""
        allowed = [f"at most {self.at_most:.0e}"] if self.at_most else []
        allowed += [f"{self.rows} rows"] if self.rows else []
        calls, columns = ", ".join(self.calls), " ".join(self.columns)
        return f"{calls} | {columns} | {self.reason} [{', '.join(allowed)}]"


@dataclass(frozen=True)
class Rule:
    """A rule on missing values that moved columns of calls, and rows for which it changes nothing.

    ``calls`` and ``columns`` are patterns as in a `Decision`. A rule has no bound: from rows that
    ``undo`` prepared, a column must have the values that were kept.
    """

    calls: Sequence[str]
    columns: Sequence[str]
    reason: str
    undo: Callable[[pl.DataFrame], pl.DataFrame]

    def text(self) -> str:
        """Return the calls and columns, and the reason."""
        return f"{', '.join(self.calls)} | {' '.join(self.columns)} | {self.reason}"


# Differences that are meant to be; one is covered if one of the decisions allows it.
DECISIONS: list[Decision] = []


def _decide(
    calls: str | Sequence[str], columns: str, reason: str, *, at_most: float = 0.0, rows: int = 0
) -> None:
    """Name the decision for columns, whose patterns are separated by spaces, of calls."""
    patterns = [calls] if isinstance(calls, str) else calls
    DECISIONS.append(Decision(patterns, columns.split(), reason, at_most, rows))


# Patterns of the texts of calls
_WEIGHTED = '*weight="w*'
_CLUSTERS = ('*design="*', '*Survey("unit")*')
_STRATA = "*Survey(*strata=*"
_REPLICATES = "*ReplicateWeights(*"
_BEST = '*reference="best"*'
_OF_DESIGNS = (*_CLUSTERS, _STRATA, _REPLICATES)

_HEAVINESS = "the heaviness of misranked rows is predicted from the other class"
_MEANS = f"{_HEAVINESS}, also in means of AUCs"
_FACTOR = "clusters are a survey with the factor c, with its degrees of freedom"
_EXACT_T = "Student's t is exact"
_OF_TEST = "by a design the degrees of freedom are those of the test"
_AT_LOOKS = "at repeated looks there are no limits in fewer than 100 rows, which is the reason"
_WELCH = "each pair of segments has Welch's degrees of freedom"


def _calls_of(function: str, texts: Iterable[str]) -> list[str]:
    return [f"{function} {text}" for text in texts]


def _decide_gone() -> None:
    """Name the decisions for calls and columns that are gone."""
    gone = {
        "compare *score*": "the method is gone",
        'group_gaps *method="logit-t"*': "the method is gone",
        "bootstrap_replicates *": "`bootstrap` has the replicates",
        "confusion_curve *": "`roc_curve` has its columns",
        "decision_changes *": "is dropped",
        "fairness max_groups*": "the option is dropped",
        "partial_auc_ci *": "`summary` has the areas",
        "partial_auc_summary *": "`summary` has the areas",
        "roc_auc_ci *design=*": "tables have designs, expressions none",
        "roc_influence *": "is dropped",
        "standardized_mean_difference *": "a metric of `group_gaps`",
        "subgroup_auc *": "`cross_auc` against the rest",
        "auc_decomposition *": "a recipe over `cross_auc`",
    }
    for calls, reason in gone.items():
        _decide(calls, CALL, reason, rows=1)
    dropped = ("*bins=*", "*min_share=*", '*adjust="bh"*', _BEST)
    _decide(_calls_of("audit", dropped), CALL, "the option is dropped", rows=1)
    for function in ("summary", "roc_auc_ci", "audit"):
        methods = ('*method="logit-t"*', '*method="newcombe"*', '*method="wald"*')
        _decide(_calls_of(function, methods), CALL, "the method is gone", rows=1)
    _decide("confusion_matrix *", "*_low *_high", "tables have limits, expressions none", rows=1)


def _decide_faults() -> None:
    """Name the decisions for faults that were found in use and mended."""
    for function in ("threshold_metrics", "operating_points"):
        _decide(
            f"{function} *",
            "net_benefit_low net_benefit_high",
            "limits of net benefits are those of `decision_curve`",
            at_most=2,
            rows=12,
        )
    heaviest = "of the segments (missing), w and a, w, whose AUC is 1, the heavier one is the best"
    tied = "group_gaps intersections, best, frequency: *"
    _decide(tied, "*.reference *.reference_value *.n_reference", heaviest, at_most=1, rows=24)
    _decide(tied, "*.gap* *.ratio* *.p_* *.detectable *.verdict", heaviest, at_most=2, rows=19)


def _decide_aucs() -> None:
    """Name the decisions for AUCs of segments."""
    for function in ("summary", "roc_auc_ci"):
        _decide(f"{function} {_WEIGHTED}", "*auc_low *auc_high", _HEAVINESS, at_most=0.2)
    _decide(_calls_of("summary", _CLUSTERS), "auc_low auc_high", _FACTOR, at_most=0.5)
    _decide("summary missing*", "ci_note", "there is a note on weights from 1.5 times on", rows=1)
    _decide(
        ("summary few, logit*", "summary few weighted, logit*"),
        "auc_low auc_high ci_method inverted",
        "there are no limits without a variance",
        rows=1,
    )
    _decide(f"cross_auc {_WEIGHTED}", "xauc_low xauc_high", _HEAVINESS, at_most=0.06)
    _decide(f"cross_auc {_WEIGHTED}", "xauc_gap_low xauc_gap_high", _MEANS, at_most=0.05)
    _decide(_calls_of("cross_auc", _CLUSTERS), "xauc_*", _FACTOR, at_most=2)
    _decide("validate weighted*", "value_low", _HEAVINESS, at_most=1e-3)


def _decide_rates() -> None:
    """Name the decisions for rates and for calibration."""
    for function in ("threshold_metrics", "operating_points"):
        calls = _calls_of(function, _CLUSTERS)
        _decide(calls, "*_low *_high", _FACTOR, at_most=2)
    rounding = "rounding of numeric derivatives, in limits near 0"
    _decide(
        (
            "threshold_metrics every point, weighted*",
            "operating_points *",
            "threshold_metrics threshold,*",
            "threshold_metrics decisions,*",
        ),
        "markedness_* mcc_* net_benefit_* youden_*",
        rounding,
        at_most=1e-7,
    )
    added = "is added up, not a difference that loses digits"
    _decide("threshold_metrics extreme*", "fn tn", added, at_most=1)
    _decide("roc_point clusters*", "fpr_low fpr_high", _FACTOR, at_most=0.06)
    columns = "mean_calibration_error_low mean_calibration_error_high p_value p_adjusted"
    _decide("calibration_test clusters*", columns, _FACTOR, at_most=0.2)


def _decide_comparisons_of_scores() -> None:
    """Name the decisions for two scores on the same rows."""
    contrast = "one contrast with pseudo-rows and Student's t"
    limits = "gap_low gap_high"
    numbers = f"{limits} p_value p_adjusted"
    decided = ["compare default*", "compare level*", "compare adjust*", "compare looks*"]
    decided += ["compare few*", "compare one class*", "compare whole*", "compare diabetes*"]
    _decide(decided, f"{numbers} gap_se", contrast, at_most=2)
    normal = "limits and tests by DeLong have normal quantiles"
    _decide("compare *delong*", f"{limits} p_value p_adjusted", normal, at_most=0.5)
    _decide(_calls_of("compare", _CLUSTERS), f"{numbers} gap_se", _FACTOR, at_most=2)
    same = "for scores in the same order the limits are those of pseudo-rows"
    in_order = ("compare few*", "compare equal scores*")
    _decide(in_order, f"{limits} gap_se", same, at_most=1, rows=3)
    _decide("compare *Looks(*", f"{limits} p_value p_adjusted", _AT_LOOKS, at_most=2, rows=6)
    census = "a census has no variance, so its limits are the gap itself"
    _decide("compare *fpc=pl.lit(1.0)*", f"{numbers} gap_se", census, at_most=1, rows=12)
    aucs = "AUCs as by `compare`"
    _decide("release_check *", "auc.gap_low auc.gap_high auc.p_value", aucs, at_most=2)
    _decide("release_check *", "auc.verdict auc.reason", aucs, rows=3)
    single = f"{aucs}, which has none of one row"
    columns = "auc.gap_low auc.gap_high auc.p_value auc.p_adjusted"
    _decide("release_check crossed only:*", columns, single, at_most=2, rows=1)
    family = f"{aucs}, in the family of all tests"
    _decide("release_check *", "*.p_adjusted", family, at_most=1)
    calls = _calls_of("release_check", _CLUSTERS)
    _decide(calls, "*.gap_low *.gap_high *.p_value *.p_adjusted", _FACTOR, at_most=2)
    _decide(calls, "*.verdict *.reason", _FACTOR, rows=3)


def _decide_gaps() -> None:
    """Name the decisions for gaps of segments."""
    ends = "*.value_low *.value_high *.gap_low *.gap_high"
    ratios = "*.ratio_low *.ratio_high"
    of_aucs = "auc.value_low auc.value_high auc.gap_low auc.gap_high"
    own = "by a design limits of a segment need no reference"
    for function in ("group_gaps", "trend"):
        by_clusters = _calls_of(function, _CLUSTERS)
        by_designs = _calls_of(function, _OF_DESIGNS)
        numbers = f"{ends} *.p_value *.p_adjusted *.detectable"
        _decide(f"{function} *", numbers, _EXACT_T, at_most=2e-5)
        _decide(f"{function} {_WEIGHTED}", "*.detectable", _EXACT_T, at_most=5e-3)
        _decide(by_clusters, f"{numbers} {ratios}", _FACTOR, at_most=2)
        _decide(by_clusters, "*.reason *.verdict", _FACTOR, rows=3)
        _decide(by_designs, "*.detectable", _OF_TEST, at_most=1, rows=7)
        _decide(by_designs, "*.value_low *.value_high", own, at_most=2e-5, rows=3)
    # The rest, all earlier periods and metrics within strata are means of AUCs.
    _decide("group_gaps *", "auc.gap_low auc.gap_high", _MEANS, at_most=1e-3)
    _decide("group_gaps *within=*", of_aucs, _MEANS, at_most=0.15)
    _decide("trend *", "auc.gap_low auc.gap_high", _MEANS, at_most=0.03)
    _decide(f"group_gaps {_WEIGHTED}", of_aucs, _HEAVINESS, at_most=0.2)
    _decide(f"group_gaps *within*{_WEIGHTED}", of_aucs, _HEAVINESS, at_most=0.5)
    _decide(f"trend {_WEIGHTED}", of_aucs, _HEAVINESS, at_most=0.7)
    for text in (_STRATA, _REPLICATES):
        _decide(f"group_gaps {text}", "auc.gap_low", _HEAVINESS, at_most=2)
        _decide(f"group_gaps {text}", "auc.p_value auc.p_adjusted", _HEAVINESS, at_most=0.15)
        _decide(f"trend {text}", "auc.p_value", _HEAVINESS, at_most=0.15)
    by_designs = ["group_gaps intersections, best, *", *_calls_of("trend", _OF_DESIGNS)]
    _decide(by_designs, "auc.value_low auc.value_high", own, at_most=0.7, rows=17)
    _decide(f"group_gaps {_BEST}", f"*.gap_low *.gap_high {ratios}", _WELCH, at_most=0.7)
    _decide("group_gaps extreme*", "*.ratio", "rounding", at_most=1e-7)
    _decide("group_gaps *Looks(*", "*.reason *.detectable", _AT_LOOKS, at_most=2e-5, rows=2)


def _decide_trends() -> None:
    """Name the decisions for shifts of scores."""
    psi = "the PSI has tenths of mid-weights, and is never null"
    numbers = "psi.value psi.gap psi.critical psi.p_value psi.p_adjusted"
    _decide("trend *", numbers, psi, at_most=1, rows=18)
    _decide("trend *", "psi.reason psi.verdict", psi, rows=18)
    limits = "shift_auc.value_low shift_auc.value_high shift_auc.gap_low shift_auc.gap_high"
    _decide(f"trend {_WEIGHTED}", limits, _HEAVINESS, at_most=0.2)
    for text in (_STRATA, _REPLICATES):
        _decide(f"trend {text}", "shift_auc.p_value shift_auc.p_adjusted", _HEAVINESS, at_most=0.11)


def _decide_joint_limits() -> None:
    """Name the decisions for impact ratios and fairness metrics."""
    moved = [_WEIGHTED, _STRATA, _REPLICATES]
    ends = ("value_low", "value_high", "ratio_low", "ratio_high")
    ratios = " ".join(f"impact_ratio.{end}" for end in ends)
    _decide(_calls_of("impact_ratios", moved), ratios, _WELCH, at_most=0.15)
    numbers = f"{ratios} *_rate.value_low *_rate.value_high *.p_value *.p_adjusted"
    own = "a rate has the reason for its own limits, a ratio for its"
    _decide("impact_ratios *", "*_rate.reason", own, rows=26)
    _decide(_calls_of("impact_ratios", _CLUSTERS), numbers, _FACTOR, at_most=0.7)
    _decide("fairness *", "*.gap_low", "rounding", at_most=2e-8)
    limits = "*.gap_low *.gap_high *.ratio_low *.ratio_high"
    _decide(_calls_of("fairness", moved), limits, _WELCH, at_most=0.25)
    _decide(_calls_of("fairness", _CLUSTERS), f"{limits} *.p_value", _FACTOR, at_most=1)


def _decide_audits() -> None:
    """Name the decisions for audits, which have the numbers of `group_gaps` and the others."""
    moved = _calls_of("audit", [_WEIGHTED, _STRATA, _REPLICATES])
    by_clusters = _calls_of("audit", _CLUSTERS)
    # The rest is a mean of AUCs.
    _decide("audit *", "auc.gap_low auc.gap_high", _MEANS, at_most=1e-3)
    _decide("audit *", "*.gap_low *.gap_high", _EXACT_T, at_most=1e-8)
    _decide(f"audit {_WEIGHTED}", "*.detectable", _EXACT_T, at_most=5e-3, rows=1)
    of_aucs = "auc.value_low auc.value_high auc.gap_low auc.gap_high"
    _decide(moved, of_aucs, _HEAVINESS, at_most=0.6)
    tests = "auc.p_value auc_difference.p_value"
    _decide(_calls_of("audit", [_STRATA, _REPLICATES]), tests, _HEAVINESS, at_most=2e-3)
    ratios = "*_ratio.ratio_low *_ratio.ratio_high impact_ratio.value_low impact_ratio.value_high"
    limits = f"*_difference.gap_low *_difference.gap_high {ratios}"
    _decide(moved, limits, _WELCH, at_most=0.25)
    _decide(_calls_of("audit", _OF_DESIGNS), "*.detectable", _OF_TEST, at_most=0.3, rows=1)
    ends = "*.value_low *.value_high *.gap_low *.gap_high *.ratio_low *.ratio_high"
    numbers = f"{ends} *.p_value *.p_adjusted *.detectable"
    _decide(by_clusters, numbers, _FACTOR, at_most=1.1)
    one_unit = f"{_FACTOR}; no limits of rows in one cluster"
    _decide(by_clusters, "auc.value_low auc.value_high", one_unit, at_most=1, rows=1)
    _decide(by_clusters, "*.reason *.detectable", _FACTOR, at_most=1, rows=3)
    _decide("audit *Looks(*", "*.reason", _AT_LOOKS, rows=3)
    slopes = "slopes leave out rows with a score of 0 or 1, and are known"
    _decide("audit diabetes*", "calibration_slope.*", slopes, at_most=0.1, rows=6)
    _decide("audit diabetes*", "*.p_adjusted *.detectable", f"{slopes}: more tests", at_most=0.1)
    parity = "demographic parity compares the groups and the side of the impact ratio"
    other_side = ('*favorable="rejected"*', "*unknown=*")
    _decide(_calls_of("audit", other_side), "demographic_parity_*", parity, at_most=2, rows=4)
    few = "c, w has less than 2 % of the weight, and so no demographic parity, as no impact ratio"
    crossed = ("audit intersections, frequency: *", "audit intersections only, frequency: *")
    _decide(crossed, "demographic_parity_*", few, at_most=1, rows=3)
    unpublished = "with the missing groups, which are few, as an extreme there was no row"
    _decide("audit min_cell: *", "demographic_parity_*.number-of-rows", unpublished, rows=1)
    named = "a group is named worse off by its outcomes, not by how the score ranks it"
    _decide("audit *", "*.direction", named, rows=27)
    _decide("audit *", "*.rank *.sentence", f"{named}; in other words", rows=40)
    rank = "two gaps may be equal but for rounding, so that either comes first"
    _decide("audit *", "*.rank", rank, rows=1)
    moves = "moved with the tests that it is ranked by"
    _decide(("audit diabetes*", "audit *uneven clusters*"), "*.rank", moves, rows=10)


def _decide_vocabulary() -> None:
    """Name the decisions for numbers of rows, reasons, costs and net benefits."""
    numbers_of_rows = "n is the rows that a value is based on, of both classes for an AUC"
    for function in ("group_gaps", "trend", "release_check", "audit"):
        columns = "auc.n auc.n_reference average_precision.n calibration_slope.n"
        columns += " calibration_slope.n_reference auc_difference.n auc_difference.n_reference"
        _decide(f"{function} *", columns, numbers_of_rows, rows=300)
    _decide("fairness *", "auc_difference.n auc_difference.n_reference", numbers_of_rows, rows=4)
    kinds = "a reason names the kind of rows that are too few, and groups that are left out"
    for function in ("group_gaps", "trend", "release_check", "audit", "fairness"):
        _decide(f"{function} *", "*.reason", kinds, rows=30)
    lonely = "the reason names a stratum with one sampling unit"
    _decide("impact_ratios *lonely unit*", "impact_ratio.reason", lonely, rows=16)
    unit = "costs are in the unit in which they were given"
    _decide("cost_curve *", "expected_cost", unit, at_most=0.76)
    _decide("equalized_thresholds *", "expected_cost overall_cost*", unit, at_most=0.5)
    net = "net benefits have the limits of `threshold_metrics`"
    columns = "value_low value_high gap_low gap_high p_value p_adjusted detectable verdict"
    for function in ("group_gaps", "trend"):
        names = " ".join(f"net_benefit.{column}" for column in columns.split())
        _decide(f"{function} *", names, net, at_most=2, rows=30)
        _decide(f"{function} *", "*.p_adjusted", f"{net}: the family's tests", at_most=0.02)
    # Relative to gaps near 0, which crossed segments and strata have.
    for calls in ('*within*weight="w*', "intersections*weighted*"):
        _decide(f"group_gaps {calls}", "auc.gap_low", _HEAVINESS, at_most=0.8)


for _name_decisions in (
    _decide_gone,
    _decide_faults,
    _decide_aucs,
    _decide_rates,
    _decide_comparisons_of_scores,
    _decide_gaps,
    _decide_trends,
    _decide_joint_limits,
    _decide_audits,
    _decide_vocabulary,
):
    _name_decisions()


def _without_decisions_of_unlabeled(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows in which those without a label have neither scores nor decisions.

    They still count in a design, as all missing rows do.
    """
    if "y" not in rows.columns:
        return rows
    used = [name for name in ("s", "t", "r", "d", "old", "new") if name in rows.columns]
    return rows.with_columns(
        pl.when(pl.col("y").is_not_null()).then(name).alias(name) for name in used
    )


def _with_missing_groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows in which those without a group are a group."""
    groups = [name for name in ("g", "h") if name in rows.columns]
    return rows.with_columns(pl.col(name).fill_null(MISSING) for name in groups)


def _without_both_rules(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows for which neither rule changes anything."""
    return _with_missing_groups(_without_decisions_of_unlabeled(rows))


# What stands for missing groups in rows for which a rule changes nothing.
MISSING = "(missing)"
_UNLABELED = "rows without a label count where no label is needed"
_NO_GROUP = "rows without a group are none of the groups of fairness metrics"
_FAIRNESS = (
    "demographic_parity",
    "equal_opportunity",
    "equalized_odds",
    "predictive_equality",
    "predictive_parity",
    "auc",
)
RULES = [
    Rule(
        [f"{function} *" for function in ("group_gaps", "trend", "release_check", "audit")],
        ["selection_rate.*", "*.p_adjusted"],
        _UNLABELED,
        _without_decisions_of_unlabeled,
    ),
    Rule(["trend min_rows: *"], ["*.detectable"], _UNLABELED, _without_decisions_of_unlabeled),
    Rule(
        ["audit *"],
        ["impact_ratio.*", "*.verdict", "n_selected"],
        _UNLABELED,
        _without_decisions_of_unlabeled,
    ),
    Rule(
        ["fairness *", "audit *"],
        [f"{metric}_*.*" for metric in _FAIRNESS],
        f"{_NO_GROUP}; {_UNLABELED}",
        _without_both_rules,
    ),
    Rule(
        ["audit no label, *", "audit decisions alone*"],
        ["demographic_parity_*.*"],
        _NO_GROUP,
        _with_missing_groups,
    ),
]

# Rows that have no successor: patterns of a call, a column and its value, and the decision.
GONE_ROWS: dict[tuple[str, str, str], str] = {
    (f"{function} *", "metric", "max_abroca"): "it has no limits, and rows repeated per group"
    for function in ("fairness", "audit")
}

WEIGHTS = {
    "unweighted": "",
    "weighted": 'weight="w"',
    "frequency": 'weight=wroc.frequency("n")',
}
DESIGNS = {
    "clusters": 'design="unit"',
    "uneven clusters": 'design="village"',
    "survey of clusters": 'design=wroc.Survey("unit")',
    "survey of rows": 'design=wroc.Survey(strata="stratum")',
    "strata": 'design=wroc.Survey("psu", strata="stratum")',
    "sampled fraction": 'design=wroc.Survey("psu", strata="stratum", fpc="fraction")',
    "units of the population": 'design=wroc.Survey("psu", strata="stratum", fpc="population")',
    "census": 'design=wroc.Survey("psu", strata="stratum", fpc=pl.lit(1.0))',
    "lonely unit": 'design=wroc.Survey("psu", strata="lone")',
    "lonely unit certain": 'design=wroc.Survey("psu", strata="lone", lonely="certainty")',
    "lonely unit adjusted": 'design=wroc.Survey("psu", strata="lone", lonely="adjust")',
    "jackknife": 'design=wroc.ReplicateWeights(JACKKNIFE, "jk1")',
    "jackknife in strata": 'design=wroc.ReplicateWeights(JACKKNIFE, "jkn", rscales=SCALES)',
    "half samples": 'design=wroc.ReplicateWeights(FAY, "fay", rho=0.3)',
    "bootstrap weights": 'design=wroc.ReplicateWeights(BOOTSTRAP, "bootstrap", df=20)',
}
WEIGHTED_DESIGNS = {
    **{name: f'weight="w", {design}' for name, design in DESIGNS.items()},
    "clusters unweighted": DESIGNS["clusters"],
    "strata unweighted": DESIGNS["strata"],
    "clusters frequency": f"{WEIGHTS['frequency']}, {DESIGNS['clusters']}",
}
LEVELS = {
    "level": "level=0.8",
    "looks": "level=wroc.Looks(2000, seen=1000)",
    "looks weighted": 'level=wroc.Looks(600, level=0.9, seen=1000), weight="w"',
    "looks clusters": 'level=wroc.Looks(2000, seen=1000), weight="w", design="unit"',
    "looks strata": (
        'level=wroc.Looks(2000, seen=1000), weight="w", design=wroc.Survey("psu", strata="stratum")'
    ),
}
ADJUSTED = {f"adjust {name}": f'adjust="{name}"' for name in ("holm", "bh", "none")}
THRESHOLD_METRICS = [
    "tpr",
    "fpr",
    "tnr",
    "fnr",
    "ppv",
    "npv",
    "selection_rate",
    "accuracy",
    "balanced_accuracy",
    "f1",
    "mcc",
    "youden",
    "lift",
    "prevalence",
    "zero_one_loss",
    "fdr",
    "for",
    "markedness",
    "f2",
    "jaccard",
    "lr_pos",
    "lr_neg",
    "net_benefit",
]
# What the texts of calls may name.
NAMES: dict[str, Any] = {
    "wroc": wroc,
    "pl": pl,
    "EVERY": ["auc", "brier_score", "log_loss", *THRESHOLD_METRICS],
    "EVERY_RATE": THRESHOLD_METRICS,
    "JACKKNIFE": [f"jk{replicate}" for replicate in range(REPLICATES)],
    "FAY": [f"fay{replicate}" for replicate in range(REPLICATES)],
    "BOOTSTRAP": [f"boot{replicate}" for replicate in range(REPLICATES)],
    "SCALES": [0.5 if replicate % 2 else 0.8 for replicate in range(REPLICATES)],
}
# Calls that a LazyFrame cannot make.
EAGER = {"group_gaps looks counted"}


def _calls(function: str, arguments: str, variants: Mapping[str, str]) -> dict[str, str]:
    """Return a call of a function for each variant of its further arguments."""
    return {
        f"{function} {name}": f"wroc.{function}({', '.join(filter(None, (arguments, more)))})"
        for name, more in variants.items()
    }


def _crossed(
    one: Mapping[str, str], other: Mapping[str, str], left_out: Iterable[str] = ()
) -> dict[str, str]:
    """Return each variant of one mapping with each of another one."""
    return {
        f"{first}, {second}": f"{arguments}, {more}" if more else arguments
        for first, arguments in one.items()
        for second, more in other.items()
        if f"{first}, {second}" not in left_out
    }


def _from_counts(
    function: str, arguments: str, variants: Mapping[str, str], *, label: str = '"y"'
) -> dict[str, str]:
    """Return calls of a method of counts by score and of counts in bins."""
    made = {
        "counts": f'wroc.score_counts(rows, {label}, "s", by=["g", "h", "period"], MORE)',
        "bins": f'wroc.score_counts(rows, {label}, "s", by=["g", "h", "period"], bins=64, MORE)',
    }
    return {
        f"{function} {kind}, {name}, {weighing}": (
            f"wroc.from_counts({counts.replace(', MORE', f', {weight}' if weight else '')})"
            f".{function}({', '.join(filter(None, (arguments, more)))})"
        )
        for kind, counts in made.items()
        for name, more in variants.items()
        for weighing, weight in WEIGHTS.items()
    }


def _expressions() -> dict[str, str]:
    """Return calls of expressions, in groups and over groups."""
    arguments = {
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
        "partial_auc": "fpr=(0, 0.2)",
        "cost_partial_auc": "cost_fn=3, cost_fp=1",
        "curve_metrics": 'metrics=["ks", "gini", "pr_auc"]',
        "roc_auc_ci": "",
        "partial_auc_ci": "fpr=(0, 0.2)",
        "confusion_matrix": 'threshold=0.5, metrics="all"',
    }
    more = {
        "roc_auc_ci clusters": 'wroc.roc_auc_ci("y", "s", weight="w", design="unit")',
        "roc_auc_ci logit-t": 'wroc.roc_auc_ci("y", "s", weight="w", method="logit-t", level=0.8)',
        "roc_auc_ci newcombe": 'wroc.roc_auc_ci("y", "s", weight="w", method="newcombe")',
        "roc_auc_ci looks": (
            'wroc.roc_auc_ci("y", "s", weight="w", level=wroc.Looks(2000, seen=1000))'
        ),
        "partial_auc tpr": 'wroc.partial_auc("y", "s", weight="w", tpr=(0.8, 1))',
        "partial_auc two-way": (
            'wroc.partial_auc("y", "s", weight="w", fpr=(0, 0.4), tpr=(0.5, 1), standardize=True)'
        ),
        "partial_auc_ci tpr": 'wroc.partial_auc_ci("y", "s", weight="w", tpr=(0.8, 1))',
        "partial_auc_ci clusters": (
            'wroc.partial_auc_ci("y", "s", weight="w", fpr=(0, 0.3), design="unit")'
        ),
        "confusion_matrix rule": (
            'wroc.confusion_matrix("y", "s", wroc.rules.youden(), metrics="all", weight="w")'
        ),
    }
    calls = {}
    for name, further in arguments.items():
        for weighing, weight in WEIGHTS.items():
            inside = ", ".join(filter(None, ('"y", "s"', further, weight)))
            call = f"wroc.{name}({inside})"
            if name in ("equal_error_rate", "roc_hull_auc", "h_measure"):
                given = ", ".join(filter(None, (f'"y", "s", "{name}"', weight)))
                call = f'wroc.curve_metrics({given}).struct.field("{name}")'
            more[f"{name} {weighing}"] = call
    for name, expression in more.items():
        # The losses are refused for NaN scores; null ones are missing.
        function, what = name.split(" ", 1)
        calls[f"{function} expression, {what}"] = (
            f'rows.group_by("g", maintain_order=True).agg(v={expression})'
        )
    calls["roc_auc_ci expression, over"] = (
        'rows.select("g", v=wroc.roc_auc_ci("y", "s", weight="w").over("g"))'
    )
    calls["roc_auc_ci expression, few"] = 'few.group_by("g").agg(v=wroc.roc_auc_ci("y", "s"))'
    calls["roc_auc_ci expression, few"] += '.sort("g")'
    calls["roc_auc_multiclass expression"] = (
        'made.select(v=wroc.roc_auc_multiclass("h", {"u": "s", "v": "t"}, average="macro"))'
    )
    return calls


def _summaries() -> dict[str, str]:
    methods = {name: f'method="{name}"' for name in ("score", "logit-t", "logit", "wald")}
    methods["newcombe"] = 'method="newcombe"'
    by_replicates = {name: design for name, design in DESIGNS.items() if "ReplicateW" in design}
    designed = ("clusters", "strata", "lonely unit adjusted", "jackknife")
    further = {name: methods[name] for name in ("logit-t", "logit", "wald")}
    looks = {name: text for name, text in LEVELS.items() if name.startswith("looks")}
    start = '"y", "s", by="g", diagnostics=True'
    variants = {
        **WEIGHTS,
        **LEVELS,
        **WEIGHTED_DESIGNS,
        **_crossed(methods, WEIGHTS),
        **_crossed({name: WEIGHTED_DESIGNS[name] for name in designed}, further),
        **_crossed(looks, further),
        **_crossed(by_replicates, methods, [f"{name}, newcombe" for name in by_replicates]),
        **_crossed({"bins": "bins=64"}, WEIGHTS),
        **_crossed({"tolerance": "bins=16, tolerance=0.001"}, WEIGHTS),
    }
    start_of_rows = '"y", "s", diagnostics=True'
    return {
        **_calls("summary", f"rows, {start}", variants),
        **_calls(
            "summary",
            f"rows, {start_of_rows}",
            {f"whole, {name}": weight for name, weight in WEIGHTS.items()},
        ),
        **_calls("summary", f"few, {start}", _of("few", methods)),
        **_calls("summary", f"few, {start}", _of("few weighted", methods, 'weight="w"')),
        **_calls("summary", f"few, {start}", {"few clusters": 'weight="w", design="unit"'}),
        **_calls("summary", f"one_class, {start}", _of("one class", methods)),
        **_calls("summary", f"extreme, {start}", {"extreme": 'weight="w"'}),
        **_calls("summary", f"ties, {start}", {"ties": 'weight="w", level=0.9'}),
        **_calls("summary", f"missing, {start}", {"missing": 'weight="w"'}),
        **_calls("summary", f"survey, {start}", {"survey": f'weight="w", {DESIGNS["strata"]}'}),
        **_calls("summary", f"rows.head(0), {start}", {"no rows": 'weight="w"'}),
        **_calls("summary", f"rows.head(0), {start_of_rows}", {"no rows, whole": 'weight="w"'}),
        **_from_counts("summary", 'by="g", diagnostics=True', {"groups": ""}),
        **_from_counts("summary", "diagnostics=True", {"whole": ""}),
        "summary loans": 'wroc.summary(loans, "approved", "score", by=["race", "sex"])',
        "summary expression": (
            'wroc.summary(rows, pl.col("y"), -pl.col("r"), by=pl.col("k") > 1, weight="w")'
        ),
        "summary several scores": (
            'wroc.summary(rows, "y", ["s", "t", "r"], by=["g", "h"], weight="w")'
        ),
        "summary several scores, bins": (
            'wroc.summary(rows, "y", ["s", "t", "r"], by="g", weight="w", bins=64)'
        ),
        "summary pos_label": 'wroc.summary(rows, "outcome", "s", by="g", pos_label="bad")',
        "summary whole numbers": (
            'wroc.summary(rows.with_columns(pl.col("r").cast(pl.Int64, strict=False)), "y", "r")'
        ),
        "summary single precision": (
            'wroc.summary(rows.with_columns(pl.col("t").cast(pl.Float32)), "y", "t", by="g")'
        ),
        "summary infinite scores": (
            'wroc.summary(rows.with_columns(pl.when(pl.col("r") > 1).then(pl.lit(float("inf")))'
            '.otherwise("r").alias("r")), "y", "r", by="g", weight="w")'
        ),
        "summary parts": (
            'wroc.summary([rows.head(500), rows.slice(500)], "y", "s", by="g", weight="w")'
        ),
    }


def _of(name: str, variants: Mapping[str, str], more: str = "") -> dict[str, str]:
    """Return variants with a name before theirs and further arguments."""
    return {
        f"{name}, {variant}": ", ".join(filter(None, (arguments, more)))
        for variant, arguments in variants.items()
    }


def _partial_areas() -> dict[str, str]:
    ranges = {
        "low fpr": "fpr=(0, 0.2)",
        "middle fpr": "fpr=(0.1, 0.4)",
        "high tpr": "tpr=(0.8, 1)",
        "middle tpr": "tpr=(0.4, 0.8)",
        "all": "fpr=(0, 1)",
    }
    methods = {name: f'method="{name}"' for name in ("score", "logit-t", "logit", "wald")}
    limits = _of("limits", ranges, "level=0.95")
    start = '"y", "s", by="g"'
    two_ways = "fpr=(0, 0.4), tpr=(0.5, 1)"
    variants = {
        **_crossed(ranges, WEIGHTS),
        **_crossed(limits, {name: WEIGHTS[name] for name in ("unweighted", "weighted")}),
        **_crossed(limits, methods),
        **_crossed({name: limits[name] for name in limits if "middle" not in name}, DESIGN_KINDS),
        "low fpr, looks": 'fpr=(0, 0.2), level=wroc.Looks(2000, seen=1000), weight="w"',
        "two ways": two_ways,
        "two ways, weighted": f'{two_ways}, weight="w"',
        "two ways, McClish": f'{two_ways}, weight="w", standardize=True',
        "two ways, mean": f'{two_ways}, weight="w", standardize="mean"',
        "low fpr, McClish": 'fpr=(0, 0.2), weight="w", standardize=True',
        "high tpr, mean": 'tpr=(0.8, 1), weight="w", standardize="mean"',
        "low fpr, bins": 'fpr=(0, 0.2), weight="w", bins=64',
        "high tpr, tolerance": 'tpr=(0.8, 1), weight="w", bins=16, tolerance=0.001',
    }
    return {
        **_calls("partial_auc_summary", f"rows, {start}", variants),
        **_calls("partial_auc_summary", f"few, {start}", _of("few", ranges, "level=0.95")),
        **_calls(
            "partial_auc_summary", f"few, {start}", _of("few", limits, 'weight="w", design="unit"')
        ),
        **_from_counts("partial_auc_summary", 'by="g"', {"low fpr": "fpr=(0, 0.2)"}),
        "partial_auc_summary several scores": (
            'wroc.partial_auc_summary(rows, "y", ["s", "r"], fpr=(0, 0.3), level=0.9, weight="w")'
        ),
    }


# A design of each kind.
DESIGN_KINDS = {
    name: WEIGHTED_DESIGNS[name]
    for name in ("clusters", "strata", "sampled fraction", "lonely unit", "half samples")
}


def _threshold_metrics() -> dict[str, str]:
    every = 'metrics="all"'
    start = '"y", "s", by="g"'
    thresholds = {
        "two": "threshold=[0.3, 0.5]",
        "every point": "",
        "outside": "threshold=[-1, 2]",
        "median": 'threshold="median"',
        "max_fpr": "threshold=wroc.rules.max_fpr(0.2)",
        "youden": "threshold=wroc.rules.youden()",
        "decisions": 'selected="d"',
    }
    one = {"threshold": "threshold=0.4", "decisions": 'selected="d"'}
    variants = {
        **_crossed(_of("", thresholds, every), WEIGHTS),
        **_crossed(_of("", one, every), WEIGHTED_DESIGNS),
        **_crossed(_of("", one, every), LEVELS),
        "default metrics": 'threshold=0.4, weight="w"',
        "no limits": f'threshold=0.4, {every}, level=None, weight="w"',
        "prevalence": f'threshold=0.4, {every}, prevalence=0.1, weight="w"',
        "prevalence, unweighted": f"threshold=0.4, {every}, prevalence=0.1",
        "rule, clusters": f"threshold=wroc.rules.max_fpr(0.2), {every}, {DESIGNS['clusters']}",
    }
    variants = {name.removeprefix(", "): text for name, text in variants.items()}
    few = {"few": f"threshold=0.5, {every}", "few weighted": f'threshold=0.5, {every}, weight="w"'}
    few["few clusters"] = f'threshold=0.5, {every}, weight="w", design="unit"'
    return {
        **_calls("threshold_metrics", f"rows, {start}", variants),
        **_calls("threshold_metrics", f"few, {start}", few),
        **_calls(
            "threshold_metrics", f"extreme, {start}", {"extreme": 'threshold=0.5, weight="w"'}
        ),
        **_calls("threshold_metrics", f"rows.head(0), {start}", {"no rows": "threshold=0.5"}),
        **_from_counts(
            "threshold_metrics",
            f'by="g", {every}',
            {
                "two": "threshold=[0.25, 0.5]",
                "every point": "level=None",
                "rule": "threshold=wroc.rules.youden()",
            },
        ),
        "threshold_metrics decisions alone": (
            'wroc.threshold_metrics(rows, "y", selected="d", by="g", weight="w", metrics="all")'
        ),
        "threshold_metrics several scores": (
            'wroc.threshold_metrics(rows, "y", ["s", "t"], threshold=0.4, by=["g", "h"],'
            ' weight="w", metrics="all")'
        ),
        "threshold_metrics several scores, median": (
            'wroc.threshold_metrics(rows, "y", ["s", "r"], threshold="median", weight="w")'
        ),
    }


def _operating_points() -> dict[str, str]:
    """Return calls of `threshold_metrics` that choose thresholds, under the name of before."""
    rules = {
        "youden": "youden()",
        "closest_topleft": "closest_topleft()",
        "max_accuracy": "max_accuracy()",
        "least_cost": "least_cost(fn=5, fp=1)",
        "least_cost of a prevalence": "least_cost(fn=5, fp=1, prevalence=0.2)",
        "max_fpr": "max_fpr(0.1)",
        "min_tpr": "min_tpr(0.8)",
        "max_selection_rate": "max_selection_rate(0.25)",
    }
    rules = {name: f"threshold=wroc.rules.{rule}" for name, rule in rules.items()}
    each = {name: f"{rule}, per_group=True" for name, rule in rules.items()}
    end = 'by="g", metrics="all", level=0.95'
    start = 'rows, "y", "s"'
    chosen = {
        f"{name}, {weighing}": ", ".join(filter(None, (rule, end, weight)))
        for name, rule in each.items()
        for weighing, weight in WEIGHTS.items()
    }
    common = {f"{name}, common": f'{rule}, {end}, weight="w"' for name, rule in rules.items()}
    youden = each["youden"]
    by = 'by="g", metrics="all"'
    more = {
        **{
            f"max_fpr, {name}": f"{each['max_fpr']}, {end}, {text}"
            for name, text in WEIGHTED_DESIGNS.items()
        },
        **{f"youden, {name}": f"{youden}, {by}, {text}" for name, text in LEVELS.items()},
        "no limits": f'{youden}, {by}, weight="w", level=None',
        "bootstrap": f'{youden}, {end}, honest="bootstrap", resamples=20',
        "bootstrap, weighted": (
            f'{each["max_fpr"]}, {end}, weight="w", honest="bootstrap", resamples=20, seed=3'
        ),
        "crossfit": f'{youden}, {end}, honest="crossfit"',
        "crossfit, weighted": f'{each["max_fpr"]}, {end}, weight="w", honest="crossfit"',
    }
    calls = _calls("threshold_metrics", start, {**chosen, **common, **more})
    methods = _from_counts(
        "threshold_metrics",
        "",
        {name: f"{each[name]}, {end}" for name in ("youden", "max_fpr")},
    )
    several = {
        "several scores": f'rows, "y", ["s", "r"], {each["min_tpr"]}, {end}, weight="w"',
        "several scores, common": f'rows, "y", ["s", "r"], {rules["youden"]}, {end}',
        "few": f'few, "y", "s", {youden}, {end}',
    }
    calls |= {**methods, **_calls("threshold_metrics", "", several)}
    return {
        name.replace("threshold_metrics", "operating_points", 1): text
        for name, text in calls.items()
    }


def _group_gaps() -> dict[str, str]:
    start = '"y", "s", attributes="g"'
    references = {
        "rest": 'reference="rest"',
        "overall": 'reference="overall"',
        "named": 'reference="a"',
        "best": 'reference="best"',
    }
    kinds = {
        "default metrics": "threshold=0.4",
        "every metric": "threshold=0.4, metrics=EVERY",
        "decisions": 'selected="d"',
    }
    strata = {
        name: f"threshold=0.4, within={within}"
        for name, within in {"within": '"h"', "within two": '["h", "k"]'}.items()
    }
    of_strata = {name: text for name, text in references.items() if name != "overall"}
    # Every design for the default metrics; for others one of each kind but against the rest.
    default = _crossed({"default metrics": kinds["default metrics"]}, references)
    others = _crossed({name: kinds[name] for name in ("every metric", "decisions")}, references)
    against_rest = {name: text for name, text in others.items() if name.endswith("rest")}
    variants = {
        **_crossed(default, {**WEIGHTS, **WEIGHTED_DESIGNS}),
        **_crossed(others, {**WEIGHTS, **DESIGN_KINDS}),
        **_crossed(against_rest, WEIGHTED_DESIGNS),
        **_crossed(_crossed(strata, of_strata), WEIGHTS),
        **_crossed(_of("decisions within", of_strata, 'selected="d", within="h"'), WEIGHTS),
        **_crossed(_crossed({"margins": "threshold=0.4, margin=0.15"}, ADJUSTED), references),
        **_crossed(_crossed({"min_rows": "threshold=0.4, min_rows=60"}, references), WEIGHTS),
        **_crossed(_crossed({"default": "threshold=0.4"}, references), LEVELS),
        **_crossed({"every, rest": "threshold=0.4, metrics=EVERY"}, LEVELS),
        **_crossed(
            _crossed({"within": 'threshold=0.4, within="h"'}, of_strata),
            {name: LEVELS[name] for name in ("level", "looks", "looks weighted")},
        ),
        **_crossed(_crossed({"logit-t": 'method="logit-t"'}, references), WEIGHTS),
        "auc only": 'weight="w"',
        "median": 'threshold="median", weight="w"',
        "rule": 'threshold=wroc.rules.max_fpr(0.2), weight="w"',
        "looks counted": "threshold=0.4, level=wroc.Looks(2000)",
    }
    few = _crossed(_of("few", references, "threshold=0.5"), WEIGHTS, ())
    few = {name: text for name, text in few.items() if "frequency" not in name}
    few |= _crossed(_of("few clusters", references, "threshold=0.5"), DESIGN_OF_FEW)
    few |= _of("few every metric", references, 'threshold=0.5, metrics=EVERY, weight="w"')
    few |= _of("few within", of_strata, 'threshold=0.5, within="h"')
    crossed = {
        "intersections": "intersections=True, threshold=0.4",
        "intersections only": 'intersections="only", threshold=0.4',
        "attributes": "threshold=0.4",
        "attributes, mapping": 'threshold=0.4, reference={"g": "a", "h": "u"}',
        "attributes, best": 'threshold=0.4, reference="best"',
        "attributes, overall": 'threshold=0.4, reference="overall", metrics=EVERY',
        "intersections, best": 'intersections=True, threshold=0.4, reference="best"',
        "intersections, within": 'intersections=True, threshold=0.4, within="k"',
        "intersections, every metric": "intersections=True, threshold=0.4, metrics=EVERY",
    }
    weighing = {"unweighted": "", **{n: WEIGHTED_DESIGNS[n] for n in ("clusters", "strata")}}
    crossed_calls = _crossed(crossed, {**WEIGHTS, **weighing})
    crossed_calls = {
        name: text
        for name, text in crossed_calls.items()
        if "within" not in text or "design" not in text
    }
    counted = _crossed(
        {"default": "threshold=0.5", "every": "threshold=0.5, metrics=EVERY_RATE"}, references
    )
    return {
        **_calls("group_gaps", f"rows, {start}", variants),
        **_calls("group_gaps", f"few, {start}", few),
        **_calls("group_gaps", 'rows, "y", "s", attributes=["g", "h"]', crossed_calls),
        **_calls(
            "group_gaps", f"one_class, {start}", _of("one class", references, "threshold=0.5")
        ),
        **_calls("group_gaps", f"extreme, {start}", {"extreme": 'threshold=0.5, weight="w"'}),
        **_calls("group_gaps", f"rows.head(0), {start}", {"no rows": "threshold=0.4"}),
        **_from_counts("group_gaps", 'attributes="g"', counted),
        **_from_counts("group_gaps", 'attributes="g"', {"within": 'within="h", threshold=0.5'}),
        "group_gaps several scores": (
            'wroc.group_gaps(rows, "y", ["s", "t"], attributes=["g", "h"], threshold=0.4,'
            ' weight="w", reference="best")'
        ),
        "group_gaps several scores, every metric": (
            'wroc.group_gaps(rows, "y", ["s", "t"], attributes="g", threshold=0.4,'
            ' weight="w", metrics=EVERY, design="unit")'
        ),
        "group_gaps decisions alone": (
            'wroc.group_gaps(rows, "y", selected="d", attributes="g", weight="w")'
        ),
        "group_gaps decisions alone, every metric": (
            'wroc.group_gaps(rows, "y", selected="d", attributes="g", weight="w",'
            " metrics=EVERY_RATE[:-1])"
        ),
        "group_gaps loans": (
            'wroc.group_gaps(loans, "approved", "score", attributes=["race", "sex"],'
            " threshold=0.85, min_rows=30, intersections=True)"
        ),
        "group_gaps diabetes": (
            'wroc.group_gaps(diabetes, "progressed", ["score", "score_b"], attributes="age_band",'
            ' reference="best", threshold=0.5)'
        ),
    }


DESIGN_OF_FEW = {
    "unweighted": 'design="unit"',
    "weighted": 'weight="w", design="unit"',
    "survey": 'weight="w", design=wroc.Survey("unit")',
}


def _mean_differences() -> dict[str, str]:
    start = '"s", attributes="g"'
    references = {"rest": "", "named": 'reference="a"'}
    divided = {
        f"{name}, {denominator}": ", ".join(filter(None, (f'denominator="{denominator}"', text)))
        for name, text in references.items()
        for denominator in ("overall", "pooled", "reference")
    }
    variants = {
        **_crossed(divided, WEIGHTS),
        **_crossed(divided, WEIGHTED_DESIGNS),
        **_crossed({name: divided[name] for name in list(divided)[:2]}, LEVELS),
        "unknown kept": 'unknown="keep", weight="w"',
        "unknown listed": 'unknown=["d", "e"], weight="w"',
        "min_share": 'min_share=0.2, weight="w"',
        "no min_share": 'min_share=0, weight="w"',
    }
    return {
        **_calls("standardized_mean_difference", f"rows, {start}", variants),
        **_calls("standardized_mean_difference", f"few, {start}", _of("few", divided)),
        "standardized_mean_difference crossed": (
            'wroc.standardized_mean_difference(rows, ["s", "r"], attributes=["g", "h"],'
            ' intersections=True, weight="w")'
        ),
        "standardized_mean_difference crossed only": (
            'wroc.standardized_mean_difference(rows, "s", attributes=["g", "h"],'
            f' intersections="only", weight="w", {DESIGNS["strata"]})'
        ),
    }


def _trends() -> dict[str, str]:
    start = '"y", "s", over="period"'
    kinds = {
        "auc": "",
        "threshold": 'threshold=0.4, attributes="g"',
        "decisions": 'selected="d", attributes="g"',
        "every metric": "threshold=0.4, metrics=EVERY",
    }
    variants = {
        **{name: kinds[name] for name in ("auc", "threshold", "decisions", "every metric")},
        **_crossed({name: kinds[name] for name in kinds if kinds[name]}, WEIGHTS),
        **_crossed({"threshold": kinds["threshold"]}, WEIGHTED_DESIGNS),
        **_crossed({name: kinds[name] for name in ("decisions", "every metric")}, DESIGN_KINDS),
        "level": "threshold=0.4, metrics=EVERY, level=0.8",
        **_crossed({"margins": 'threshold=0.4, margin=0.15, attributes="h"'}, ADJUSTED),
        "min_rows": 'threshold=0.4, attributes="g", min_rows=40',
        "shifts": 'metrics=["shift_auc", "score_ks", "psi"], weight="w", attributes="g"',
        "shifts, clusters": 'metrics=["shift_auc", "score_ks", "psi"], design="unit"',
        "rule": 'threshold=wroc.rules.youden(), weight="w"',
    }
    by_period = 'over="period", attributes="g"'
    return {
        **_calls("trend", f"rows, {start}", variants),
        **_calls("trend", 'few, "y", "s", over="period"', {"few": 'threshold=0.5, attributes="g"'}),
        **_from_counts("trend", by_period, {"threshold": "threshold=0.5"}),
        "trend months": (
            'wroc.trend(rows, "y", "s", over="day", every="1mo", threshold=0.4, weight="w")'
        ),
        "trend no label": 'wroc.trend(rows, None, "s", over="period", threshold=0.4, weight="w")',
        "trend decisions alone": (
            'wroc.trend(rows, "y", selected="d", over="period", attributes="h", weight="w")'
        ),
        "trend several scores": (
            'wroc.trend(rows, "y", ["s", "t"], over="period", threshold=0.4, weight="w")'
        ),
    }


def _impact_ratios() -> dict[str, str]:
    goods = {name: f'favorable="{name}"' for name in ("selected", "rejected")}
    references = {"highest": "", "named": 'reference="b"'}
    compared = {
        f"{good}, {name}": ", ".join(filter(None, (favorable, reference)))
        for good, favorable in goods.items()
        for name, reference in references.items()
    }
    variants = {
        **_crossed(compared, WEIGHTS),
        **_crossed(compared, WEIGHTED_DESIGNS),
        **_crossed(compared, LEVELS),
        **_crossed({"selected": goods["selected"]}, ADJUSTED),
        "fisher": 'favorable="selected", exact="fisher"',
        "unknown kept": 'favorable="selected", unknown="keep"',
        "unknown listed": 'favorable="selected", unknown=["d", "e"], weight="w"',
        "min_share": 'favorable="selected", min_share=0.2',
        "no min_share": 'favorable="selected", min_share=0',
    }
    few = {
        **_of("few", compared),
        **_of("few weighted", compared, 'weight="w"'),
        **_of("few fisher", compared, 'exact="fisher", min_share=0'),
        **_of("few clusters", compared, 'weight="w", design="unit"'),
    }
    at_threshold = {
        "threshold": "threshold=0.4",
        "median": 'threshold="median"',
        "high threshold": "threshold=0.9",
    }
    by_score = _crossed(_crossed(at_threshold, goods), {**WEIGHTS, **DESIGN_KINDS})
    crossed = _crossed(
        {"intersections": "intersections=True", "intersections only": 'intersections="only"'}, goods
    )
    crossed |= _crossed({"mapping": 'reference={"g": "a", "h": "u"}'}, goods)
    by_counts = {
        "threshold": 'threshold=0.5, favorable="selected"',
        "rejected": 'threshold=0.5, favorable="rejected"',
    }
    by_decision = 'attributes="g", selected="d"'
    return {
        **_calls("impact_ratios", f"rows, {by_decision}", variants),
        **_calls("impact_ratios", f"few, {by_decision}", few),
        **_calls("impact_ratios", 'rows, "s", attributes="g"', by_score),
        **_calls(
            "impact_ratios",
            'rows, attributes=["g", "h"], selected="d"',
            _crossed(crossed, {**WEIGHTS, **DESIGN_KINDS}),
        ),
        **_from_counts("impact_ratios", 'attributes="g"', by_counts),
        "impact_ratios counts, median": (
            'wroc.from_counts(wroc.score_counts(rows, "y", "s", by="g", weight="w"))'
            '.impact_ratios(attributes="g", threshold="median", favorable="selected")'
        ),
        "impact_ratios several scores": (
            'wroc.impact_ratios(rows, ["s", "t"], attributes=["g", "h"], threshold=0.4,'
            ' favorable="selected", weight="w")'
        ),
        "impact_ratios loans": (
            'wroc.impact_ratios(loans, "score", attributes=["race", "sex"], intersections=True,'
            ' threshold=0.85, favorable="selected")'
        ),
    }


def _fairness() -> dict[str, str]:
    start = '"y", "s", attributes="g"'
    kinds = {"threshold": "threshold=0.4", "decisions": 'selected="d"'}
    variants = {
        **_crossed(kinds, WEIGHTS),
        **_crossed(kinds, WEIGHTED_DESIGNS),
        **_crossed(kinds, LEVELS),
        "min_rows": 'threshold=0.4, min_rows=60, weight="w"',
        "max_groups": "threshold=0.4, max_groups=3",
        "median": 'threshold="median", weight="w"',
        "rule": 'threshold=wroc.rules.max_fpr(0.2), weight="w"',
    }
    few = {
        "few": "threshold=0.5",
        "few weighted": 'threshold=0.5, weight="w"',
        "few clusters": 'threshold=0.5, weight="w", design="unit"',
    }
    crossed = {
        "intersections": "intersections=True, threshold=0.4",
        "intersections only": 'intersections="only", threshold=0.4',
    }
    return {
        **_calls("fairness", f"rows, {start}", variants),
        **_calls("fairness", f"few, {start}", few),
        **_calls("fairness", f"one_class, {start}", {"one class": "threshold=0.5"}),
        **_calls(
            "fairness",
            'rows, "y", "s", attributes=["g", "h"]',
            _crossed(crossed, {**WEIGHTS, **DESIGN_KINDS}),
        ),
        **_from_counts("fairness", 'attributes="g"', {"threshold": "threshold=0.5"}),
        "fairness several scores": (
            'wroc.fairness(rows, "y", ["s", "t"], attributes=["g", "h"], threshold=0.4, weight="w")'
        ),
        "fairness decisions alone": (
            'wroc.fairness(rows, "y", selected="d", attributes="g", weight="w")'
        ),
        "fairness loans": (
            'wroc.fairness(loans, "approved", "score", attributes="race", threshold=0.85)'
        ),
    }


def _comparisons_of_scores() -> dict[str, str]:
    start = '"y", ["s", "t", "r"], by="h"'
    methods = {"default": "", "delong": 'method="delong"', "score": 'method="score"'}
    weighing = {**WEIGHTS, **WEIGHTED_DESIGNS}
    variants = {
        name.removesuffix(", "): text.removeprefix(", ")
        for name, text in {
            **_crossed(methods, weighing),
            **_crossed(methods, LEVELS),
            **_crossed(methods, ADJUSTED),
        }.items()
    }
    few = {
        **_of("few", methods),
        **_of("few weighted", methods, 'weight="w"'),
        **_of("few clusters", methods, 'weight="w", design="unit"'),
    }
    return {
        **_calls("compare", f"rows, {start}", variants),
        **_calls("compare", 'few, "y", ["s", "t"], by="g"', few),
        **_calls("compare", 'one_class, "y", ["s", "t"], by="g"', _of("one class", methods)),
        "compare whole": 'wroc.compare(rows, "y", ["s", "t"], weight="w")',
        "compare equal scores": (
            'wroc.compare(rows, "y", ["s", pl.col("s").alias("same"), (pl.col("s") * 2)'
            '.alias("twice")], weight="w")'
        ),
        "compare diabetes": (
            'wroc.compare(diabetes, "progressed", ["score", "score_b"], by="sex")'
        ),
    }


def _release_checks() -> dict[str, str]:
    start = '"y", "s", "t", attributes="g"'
    decisions = 'selected={"old": "old", "new": "new"}'
    every = (
        'metrics=["auc", "selection_rate", "tpr", "fpr", "ppv", "npv", "accuracy", "net_benefit",'
        ' "brier_score", "log_loss"], net_benefit_at=0.3'
    )
    margins = 'margin={"brier_score": 0.02, "log_loss": 0.05, "net_benefit": 0.02, "auc": 0.03}'
    kinds = {
        "auc": "margin=0.02",
        "threshold": f"threshold=0.4, {every}",
        "margins": f"threshold=0.4, {every}, {margins}",
        "decisions": f"{decisions}, {every}, {margins}",
        "two thresholds": 'threshold={"old": 0.4, "new": 0.45}',
    }
    weighing = {**WEIGHTS, **WEIGHTED_DESIGNS}
    variants = {
        **_crossed(kinds, WEIGHTS),
        **_crossed({name: kinds[name] for name in ("margins", "decisions")}, weighing),
        **_crossed({"margins": kinds["margins"]}, LEVELS),
        **_crossed({"margins": kinds["margins"]}, ADJUSTED),
        "min_rows": "threshold=0.4, min_rows=60",
    }
    few = {
        "few": f"threshold=0.5, {every}, {margins}",
        "few weighted": f'threshold=0.5, {every}, {margins}, weight="w"',
        "few decisions": f'{decisions}, {every}, {margins}, weight="w"',
        "few clusters": f'threshold=0.5, {every}, {margins}, weight="w", design="unit"',
    }
    one_way = '(pl.col("s") * 0.9).alias("t")'
    return {
        **_calls("release_check", f"rows, {start}", variants),
        **_calls("release_check", f"few, {start}", few),
        **_calls("release_check", f"one_class, {start}", {"one class": f"threshold=0.5, {every}"}),
        "release_check whole": 'wroc.release_check(rows, "y", "s", "t", threshold=0.4, weight="w")',
        "release_check same scores": (
            f'wroc.release_check(rows, "y", "s", pl.col("s").alias("t"), threshold=0.4, {every})'
        ),
        "release_check same order": (
            f'wroc.release_check(rows, "y", "s", {one_way}, threshold={{"old": 0.4, "new": 0.36}},'
            f" {every})"
        ),
        "release_check crossed": (
            'wroc.release_check(rows, "y", "s", "t", attributes=["g", "h"], intersections=True,'
            ' threshold=0.4, weight="w")'
        ),
        "release_check crossed only": (
            'wroc.release_check(rows, "y", "s", "t", attributes=["g", "h"],'
            f' intersections="only", threshold=0.4, weight="w", {DESIGNS["strata"]})'
        ),
        "release_check loans": (
            'wroc.release_check(diabetes, "progressed", "score", "score_b", attributes="sex",'
            " threshold=0.5)"
        ),
    }


def _decision_changes() -> dict[str, str]:
    start = '"y", "s", "t", attributes="g"'
    kinds = {
        "threshold": "threshold=0.4",
        "two thresholds": 'threshold={"old": 0.4, "new": 0.45}',
        "decisions": 'selected={"old": "old", "new": "new"}',
    }
    levels = {name: LEVELS[name] for name in ("level", "looks", "looks weighted")}
    few = {"few": "threshold=0.5", "few weighted": 'threshold=0.5, weight="w"'}
    return {
        **_calls("decision_changes", f"rows, {start}", _crossed(kinds, WEIGHTS)),
        **_calls("decision_changes", f"rows, {start}", _crossed(kinds, levels)),
        **_calls("decision_changes", f"few, {start}", few),
        "decision_changes no label": (
            'wroc.decision_changes(rows, None, "s", "t", attributes="g", threshold=0.4, weight="w")'
        ),
        "decision_changes crossed": (
            'wroc.decision_changes(rows, "y", "s", "t", attributes=["g", "h"],'
            ' intersections=True, threshold=0.4, weight="w")'
        ),
        "decision_changes none": (
            'wroc.decision_changes(rows, "y", "s", pl.col("s").alias("t"), threshold=0.4)'
        ),
    }


def _audits() -> dict[str, str]:
    start = '"y", "s", attributes="g"'
    good = 'favorable="selected"'
    at_threshold = f"threshold=0.4, {good}"
    kinds = {"threshold": at_threshold, "decisions": f'selected="d", {good}'}
    references = {name: f'reference="{name}"' for name in ("rest", "overall", "best")}
    references["named"] = 'reference={"g": "a"}'
    methods = {name: f'method="{name}"' for name in ("logit-t", "wald", "newcombe")}
    variants = {
        "scores only": 'weight="w"',
        **_crossed(kinds, WEIGHTS),
        **_crossed({"threshold": at_threshold}, WEIGHTED_DESIGNS),
        **_crossed({"decisions": kinds["decisions"]}, DESIGN_KINDS),
        **_crossed({"threshold": at_threshold}, LEVELS),
        **_crossed(_crossed({"threshold": at_threshold}, references), WEIGHTS),
        **_crossed({"threshold": at_threshold}, ADJUSTED),
        **_crossed({"threshold": at_threshold}, methods),
        "rejected": 'threshold=0.4, favorable="rejected", weight="w"',
        "neither": 'threshold=0.4, favorable="neither", weight="w"',
        "median": f'threshold="median", {good}, weight="w"',
        "rule": f'threshold=wroc.rules.max_fpr(0.2), {good}, weight="w"',
        "min_rows": f"{at_threshold}, min_rows=80, margin=0.1",
        "min_cell": f"{at_threshold}, min_cell=10",
        "bins": f'threshold=0.5, {good}, bins=64, weight="w"',
        "unknown": f'{at_threshold}, unknown=["d", "e"], min_share=0.1',
        "unknown kept": f'{at_threshold}, unknown="keep"',
    }
    crossed = {
        "intersections": f"{at_threshold}, intersections=True",
        "intersections only": f'{at_threshold}, intersections="only"',
        "attributes": at_threshold,
    }
    no_label = {
        "no label, threshold": at_threshold,
        "no label, median": f'threshold="median", {good}',
        "no label, rejected": 'threshold=0.4, favorable="rejected"',
    }
    return {
        **_calls("audit", f"rows, {start}", variants),
        **_calls(
            "audit",
            f"few, {start}",
            {"few": at_threshold, "few min_rows": f"{at_threshold}, min_rows=3"},
        ),
        **_calls("audit", f"one_class, {start}", {"one class": at_threshold}),
        **_calls(
            "audit",
            'rows, "y", "s", attributes=["g", "h"]',
            _crossed(crossed, {**WEIGHTS, "clusters": DESIGN_KINDS["clusters"]}),
        ),
        **_calls(
            "audit",
            'rows, score="s", attributes=["g", "h"]',
            _crossed(no_label, {**WEIGHTS, "strata": DESIGN_KINDS["strata"]}),
        ),
        **_from_counts("audit", 'attributes="g"', {"threshold": f"threshold=0.5, {good}"}),
        "audit several scores": (
            'wroc.audit(rows, "y", ["s", "t", "r"], attributes=["g", "h"], weight="w",'
            f" {at_threshold})"
        ),
        "audit decisions alone": (
            f'wroc.audit(rows, attributes=["g", "h"], selected="d", {good}, intersections=True)'
        ),
        "audit decisions alone, weighted": (
            f'wroc.audit(rows, attributes="g", selected="d", {good}, weight="w", design="unit")'
        ),
        "audit parts": (
            'wroc.audit([rows.head(500), rows.slice(500)], "y", "s", attributes="g",'
            f' {at_threshold}, weight="w")'
        ),
        "audit loans": (
            'wroc.audit(loans, "approved", "score", attributes=["race", "sex"], threshold=0.85,'
            ' favorable="selected", intersections=True)'
        ),
        "audit diabetes": (
            'wroc.audit(diabetes, "progressed", ["score", "score_b"], attributes=["sex",'
            ' "age_band"], weight="weight", threshold=0.5, favorable="neither")'
        ),
    }


def _others() -> dict[str, str]:
    """Return calls of the functions that are not compared in every variant."""
    survey = DESIGNS["strata"]
    made, rows = 'made, "y", "s"', 'rows, "y", "s"'
    crossed = 'attributes=["g", "h", "k"], threshold=0.4'
    calls = {
        "score_counts": {
            "models": 'ties, "y", ["s", "t"], weight="w", by="g"',
            "rows": f'{rows}, weight="w", by=["g", "h"]',
            "bins": f'{rows}, weight="w", by="g", bins=32',
            "frequency": f'{rows}, weight=wroc.frequency("n"), by="g"',
            "no label": 'rows, None, "s", weight="w", by="g"',
        },
        "merge_counts": {
            "bins": (
                '[wroc.score_counts(ties, "y", "s", weight="w", by="g"), wroc.score_counts(made,'
                ' "y", "s", weight="w", by="g")], bins=32'
            )
        },
        "dominated_models": {"weighted": 'made, "y", ["s", "t"], weight="w", by="g"'},
        "bootstrap": {
            "weighted": (
                f'{made}, metrics=["ks", "roc_auc"], weight="w", by="g", resamples=20, seed=3'
            ),
            "clusters": f'{made}, metrics="ks", design="unit", resamples=20',
            "survey": f'{rows}, metrics="roc_auc", weight="w", {survey}, resamples=20',
        },
        "bootstrap_replicates": {"groups": f'{made}, metrics="ks", by="h", replicates=9'},
        "roc_point": {
            "fpr": f'{made}, fpr=[0.1, 0.2], weight="w", by="g"',
            "tpr": f'{made}, tpr=0.8, weight="w", by="g"',
            "survey": f'{rows}, fpr=0.1, weight="w", {survey}',
            "clusters": f'{rows}, tpr=0.8, weight="w", by="g", design="unit"',
        },
        "confusion_curve": {"weighted": 'ties, "y", "s", weight="w", by="g"'},
        "roc_curve": {
            "pointwise": 'ties, "y", "s", weight="w", by="g", band="pointwise"',
            "simultaneous": f'{made}, band="simultaneous"',
            "thinned": f'{made}, by="g", max_points=20',
            "rows": f'{rows}, by="g", weight="w"',
        },
        "pr_curve": {"weighted": 'ties, "y", "s", weight="w", by="g"'},
        "cost_curve": {"groups": f'{made}, cost_fn=3, cost_fp=1, by="g"'},
        "decision_curve": {
            "weighted": f'{made}, thresholds=[0.2, 0.5], weight="w", by="g"',
            "survey": f'{rows}, thresholds=[0.2, 0.5], weight="w", by="g", {survey}',
        },
        "calibration_curve": {
            "weighted": f'{made}, weight="w", by="g"',
            "quantile": f'{made}, by="g", strategy="quantile"',
            "survey": f'{rows}, by="g", weight="w", {survey}',
            "smooth": f"{made}, smooth=True",
        },
        "calibration_summary": {
            "weighted": f'{made}, weight="w", by="g"',
            "rows": f'{rows}, weight="w", by="g"',
            "frequency": f'{rows}, weight=wroc.frequency("n"), by="g"',
            "survey": f'{rows}, weight="w", by="g", {survey}',
            "jackknife": f'{rows}, weight="w", {DESIGNS["jackknife"]}',
        },
        "calibration_test": {
            "weighted": f'{made}, weight="w", by="g"',
            "clusters": f'{rows}, weight="w", by="h", design="unit"',
        },
        "validate": {"weighted": f'{made}, weight="w", by="h"'},
        "expected_metrics": {"groups": 'made, "s", label="y", by="g", threshold=0.5, weight="w"'},
        "worst_segments": {
            "weighted": f'{rows}, {crossed}, weight="w", favorable="selected"',
            "fpr": f'{rows}, {crossed}, metric="fpr", favorable="rejected"',
        },
        "score_distribution": {"classes": 'made, "s", label="y", by="g"'},
        "cross_auc": {
            "weighted": f'{made}, by="g", weight="w"',
            "rows": f'{rows}, by="g", weight="w"',
            "clusters": f'{rows}, by="g", weight="w", design="unit"',
        },
        "subgroup_auc": {
            "weighted": f'{made}, by="g", weight="w"',
            "rows": f'{rows}, by="g", weight="w"',
        },
        "auc_decomposition": {"weighted": f'{made}, by="g", weight="w"'},
        "abroca_test": {"groups": f'{made}, by="h", permutations=19'},
        "equalized_thresholds": {"weighted": f'{made}, by="g", weight="w"'},
    }
    made_calls: dict[str, str] = {}
    for function, variants in calls.items():
        made_calls |= _calls(function, "", variants)
    made_calls["equal_scores weighted"] = (
        f'wroc.calibration_test({made}, weight="w", attributes="g", reference="rest")'
        '.rename({"segment": "g"})'
    )
    return made_calls


def _with_any_number_of_rows(calls: Mapping[str, str]) -> dict[str, str]:
    """Return calls that compare segments of any size, as was the default when they were kept."""
    compared = ("group_gaps ", "trend ", "fairness ", "release_check ")
    return {
        name: f"{text.removesuffix(')')}, min_rows=0)"
        if name.startswith(compared) and "min_rows=" not in text and text.endswith(")")
        else text
        for name, text in calls.items()
    }


_ALL: dict[str, str] = {
    **_expressions(),
    **_summaries(),
    **_partial_areas(),
    **_threshold_metrics(),
    **_operating_points(),
    **_group_gaps(),
    **_mean_differences(),
    **_trends(),
    **_impact_ratios(),
    **_fairness(),
    **_comparisons_of_scores(),
    **_release_checks(),
    **_decision_changes(),
    **_audits(),
    **_others(),
}
CALLS = _with_any_number_of_rows(_ALL)
_TABLES_OF_AUDIT = ("table", "segments", "curves", "distributions", "missing")


def tables_of(
    text: str, *, lazy: bool, prepare: Callable[[pl.DataFrame], pl.DataFrame] | None = None
) -> dict[str, pl.DataFrame]:
    """Make a call, on LazyFrames or not, and return its tables without structs and lists.

    ``prepare`` makes other rows of those of `kept_data.py`.
    """
    frames = {key: prepare(frame) if prepare else frame for key, frame in DATA.items()}
    data = {key: frame.lazy() if lazy else frame for key, frame in frames.items()}
    result = eval(text, {**NAMES, **data})  # noqa: S307
    if hasattr(result, "findings"):
        tables = {key: getattr(result, key) for key in _TABLES_OF_AUDIT}
    else:
        tables = {"table": result.collect() if isinstance(result, pl.LazyFrame) else result}
    return {key: _without_nesting(table) for key, table in tables.items() if table.width}


def complete_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the rows that lack a label, a score, a group or a decision."""
    may_lack = [name for name in ("y", "s", "g", "h", "d") if name in frame.columns]
    return frame.drop_nulls(may_lack) if may_lack else frame


def _without_nesting(table: pl.DataFrame) -> pl.DataFrame:
    """Make columns of the fields of structs, rows of lists of numbers and text of others."""
    while nested := [name for name, dtype in table.schema.items() if isinstance(dtype, pl.Struct)]:
        for name in nested:
            parts = [
                pl.col(name).struct.field(part.name).alias(f"{name}.{part.name}")
                for part in table.schema[name].fields  # type: ignore[attr-defined]
            ]
            table = table.with_columns(parts).drop(name)
    lists = {name: dtype for name, dtype in table.schema.items() if isinstance(dtype, pl.List)}
    numbers = [name for name, dtype in lists.items() if dtype.inner.is_numeric()]
    if numbers:
        table = table.explode(numbers)
    return table.with_columns(
        pl.col(name).cast(pl.List(pl.String)).list.join(", ")
        for name in lists
        if name not in numbers
    )
