"""The tables, settings and words of an audit, from which findings, gates and reports are made."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc import checks
from polars_wroc.calls import check_arguments
from polars_wroc.files import sources
from polars_wroc.files.scan import scan_files
from polars_wroc.files.sources import without_credentials
from polars_wroc.groups.categories import CategoryReference, Grouping, Intersections
from polars_wroc.groups.compare_segments import GapRules
from polars_wroc.groups.comparisons import FAIRNESS
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL
from polars_wroc.inputs.decisions import Favorable, Unknown
from polars_wroc.looks import ConfidenceLevel, Looks, as_number
from polars_wroc.names import show_name
from polars_wroc.queries import find_height
from polars_wroc.stats.families import Adjustment
from polars_wroc.stats.levels import Level
from polars_wroc.steps import FloatType
from polars_wroc.thresholds.rules import Rule


@check_arguments
@dataclass(frozen=True, kw_only=True)
class Text:
    """Title and note of an audit, and the words that its sentences use.

    Parameters
    ----------
    title
        Title of reports.
    note
        Note for readers of a report, for example on where the rows come from.
    positive, negative
        Words for people of both classes, participles or adjectives: ``"repaid"``, ``"in default"``.
        By default the name of the label if it is a participle, for example ``approved``, else
        ``"positive"``.
    selected, rejected
        Words for people by decision: ``"hired"``, ``"denied"``. By default ``"selected"`` and
        ``"not selected"``.
    people
        Plural noun for the rows: ``"applicants"``. By default ``"rows"``.
    groups
        Names of the groups of an attribute: ``{"region": "applicants in {}"}``, where ``{}`` stands
        for the value.

    Raises
    ------
    TypeError, ValueError
        For anything but nonempty text.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "sex": list("ffmm")})
    >>> text = wroc.Text(title="Defaults of 2026", positive="in default", selected="denied")
    >>> options = {"threshold": 0.5, "favorable": "rejected", "text": text}
    >>> audit = wroc.audit(df, "y", "s", attributes="sex", **options)
    >>> audit.reading
    'A score of 0.5 or more means denied (75%), which is bad for them.'
    """

    title: str | None = None
    note: str | None = None
    positive: str | None = None
    negative: str | None = None
    selected: str | None = None
    rejected: str | None = None
    people: str | None = None
    groups: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        """Raise unless each is a text."""
        for name, value in self.as_dict().items():
            if value is None or name == "groups":
                continue
            if not isinstance(value, str):
                checks.reject_type(name, "be text", value)
            if not value.strip():
                checks.reject(name, "be nonempty text", repr(value))
            checks.check_text(name, value)
        if self.groups is not None:
            _check_groups(self.groups)

    def as_dict(self) -> dict[str, Any]:
        """Return the texts by name."""
        return asdict(self)


def _check_groups(groups: object) -> None:
    """Raise unless each name of groups has a place for the value."""
    if not isinstance(groups, Mapping):
        checks.reject_type("groups", "map attributes to names of their groups", groups)
    for attribute, name in groups.items():
        if not isinstance(attribute, str) or not isinstance(name, str):
            checks.reject_type("groups", "map attributes to names of their groups", groups)
        if name.count("{}") != 1:
            rule = f"have one {{}} for the value in the name of groups of {attribute!r}"
            checks.reject("groups", rule, repr(name))
        checks.check_text("groups", name)


_PACKAGES = ("polars-wroc", "polars")


def now() -> dt.datetime:
    """Return the time in UTC, in whole seconds; the variable `SOURCE_DATE_EPOCH` sets it."""
    name = "SOURCE_DATE_EPOCH"
    if not (given := os.environ.get(name)):
        return dt.datetime.now(dt.UTC).replace(microsecond=0)
    try:
        return dt.datetime.fromtimestamp(int(given), dt.UTC)
    except (ValueError, OverflowError, OSError) as error:
        msg = f"{name} must be a number of seconds since 1970; found {given!r}"
        raise ValueError(msg) from error


@cache
def _version(package: str) -> str:
    """Return the version of an installed package, whose metadata takes long to read."""
    return version(package)


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES}


@dataclass(frozen=True)
class AuditedFile:
    """A file that was read; local files have size and hash, some files a number of rows."""

    name: str
    bytes: int | None = None
    sha256: str | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Run:
    """The run of an audit; the command line knows its command and files."""

    date: dt.datetime = field(default_factory=now)
    command: str | None = None
    files: Sequence[AuditedFile] = ()
    versions: dict[str, str] = field(default_factory=_versions)
    # Degrees of freedom of the design of a survey.
    design_df: int | None = None
    # The possible error of AUCs of scores that were counted in bins.
    auc_error: float | None = None
    # Segments with few rows, and segments that would reveal them, if these are not shown.
    left_out: Sequence[str] = ()
    # Attributes whose rows without a value are in no number, since that segment is left out.
    left_out_of_totals: Sequence[str] = ()

    @property
    def reported_files(self) -> Sequence[AuditedFile]:
        """The files, without numbers of rows that would reveal how many totals leave out."""
        if not self.left_out_of_totals:
            return self.files
        return [replace(file, rows=None) for file in self.files]

    def as_dict(self) -> dict[str, Any]:
        """Return the run as values for JSON."""
        return asdict(self) | {"date": self.date.isoformat()}


def audited_files(names: Sequence[str], *, contents: bool) -> list[AuditedFile]:
    """Return descriptions of the files that were read, without their folders.

    ``contents`` are read once more for hashes, which only some outputs show.
    """
    files = sources.each_file(names)
    return [_describe_file(file, contents=contents) for file in files]


def saved_audits(names: Sequence[str]) -> list[AuditedFile]:
    """Return descriptions of the files of saved audits, without their folders."""
    return [_hash_file(Path(name)) for name in names]


def _describe_file(file: str, *, contents: bool) -> AuditedFile:
    if sources.is_address(file):
        return AuditedFile(without_credentials(file))
    if file == sources.STANDARD_INPUT:
        content = sources.read_standard_input()
        return AuditedFile("standard input", len(content), hashlib.sha256(content).hexdigest())
    path = Path(file)
    if not contents:
        return AuditedFile(path.name)
    described = _hash_file(path)
    if not sources.store_row_counts([file]):
        return described
    return replace(described, rows=find_height(scan_files([file])))


def _hash_file(path: Path) -> AuditedFile:
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return AuditedFile(path.name, path.stat().st_size, digest)


AuditReferenceKind: TypeAlias = Literal["rest", "overall"]
# Audits name groups, for which controlling the rate of false findings is not enough.
AuditAdjustment: TypeAlias = Literal["holm", "none"]
AuditReference: TypeAlias = AuditReferenceKind | Mapping[str, Any]


@dataclass(frozen=True)
class AuditSettings:
    """The arguments of an audit, with columns by name, in the order in which they are shown."""

    # None for counts, which do not know the name of their label, and without labels.
    label: str | None
    pos_label: object
    # Empty for recorded decisions without a score.
    score: list[str]
    weight: str | None
    # Whether the weight counts rows.
    frequency: bool
    attributes: list[str]
    intersections: Intersections
    # A given number, or the rule that chose it.
    threshold: float | Rule | None
    # The column of recorded decisions.
    selected: str | None
    # Names of columns by arguments of `Survey`, or the kind of replicate weights.
    design: dict[str, Any] | None
    reference: CategoryReference
    level: ConfidenceLevel
    adjust: Adjustment
    min_rows: int
    margin: float
    favorable: Favorable | None
    text: Text
    min_cell: int | None
    bins: int | None
    unknown: Unknown
    # Whether rows have a label besides decisions.
    labeled: bool = True
    polars_wroc: str = field(default_factory=partial(_version, "polars-wroc"))

    @property
    def confidence(self) -> float:
        """The confidence level as a number; for repeated looks, the joint level."""
        return as_number(self.level)

    @property
    def rule(self) -> Rule | None:
        """The rule that chose the threshold."""
        return self.threshold if isinstance(self.threshold, Rule) else None

    @property
    def by_design(self) -> bool:
        """Whether gaps and rates have the variances of a survey design."""
        return self.design is not None

    @property
    def more_than_clusters(self) -> bool:
        """Whether AUCs of segments have these variances too, instead of those of clusters."""
        return self.design is not None and self.design["kind"] != "clusters"

    @property
    def audited_columns(self) -> list[str]:
        """The names of the scores, or of recorded decisions without a label."""
        return self.score if self.labeled or self.selected is None else [self.selected]

    @property
    def has_recorded_decisions(self) -> bool:
        """Whether decisions were recorded."""
        return self.selected is not None

    @property
    def decides(self) -> bool:
        """Whether there are decisions, so that it must be known which one is good."""
        return self.favorable is not None

    @property
    def several(self) -> bool:
        """Whether there are several scores, so that sentences must name them."""
        return len(self.score) > 1

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as users and files see them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        shown: dict[str, Any] = {
            "reference": self.reference.argument,
            "text": self.text.as_dict(),
            "level": self.confidence,
        }
        if self.rule is not None:
            shown["threshold"] = self.rule.as_dict()
        looks = self.level.as_dict() if isinstance(self.level, Looks) else None
        return values | shown | {"looks": looks}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AuditSettings:
        """Return the settings that `as_dict` returned, as they are in JSON."""
        used = {each.name: values[each.name] for each in fields(cls) if each.name in values}
        level, looks = float(values["level"]), values.get("looks")
        used["level"] = Looks(**looks, level=level) if looks else level
        texts = values["text"]
        used["text"] = Text(**{each.name: texts.get(each.name) for each in fields(Text)})
        reference = values["reference"]
        named = reference if isinstance(reference, Mapping) else {}
        used["reference"] = CategoryReference("rest" if named else reference, named)
        if isinstance(values["threshold"], Mapping):
            name, *options = values["threshold"].items()
            used["threshold"] = Rule(name[1], tuple(options))
        return cls(**used)


@dataclass(frozen=True)
class AuditPlan:
    """The measurements for an audit with some settings.

    Unless decisions were recorded, the ``choice`` is a threshold, or a rule that chooses one for
    each score on all rows. Missing scores are counted under the names in ``scores``;
    ``score_names`` are the names of models in tables. ``unknown`` has for each key the condition
    that its value is unknown in impact ratios. ``score_types`` are the types that scores came in,
    in their order. With ``labeled_only``, rows without a label are left out of selection rates too.
    """

    settings: AuditSettings
    groupings: Sequence[Grouping]
    choice: float | Rule | None
    scores: Sequence[str]
    score_names: Mapping[str, str | None]
    unknown: Mapping[str, pl.Expr]
    score_types: Sequence[FloatType] = ()
    labeled_only: bool = False

    def rules(self, level: ConfidenceLevel) -> GapRules:
        """Return the rules by which gaps are tested and judged at a level."""
        settings = self.settings
        return GapRules(Level.of(level), settings.adjust, settings.margin, settings.min_rows)


# The name of all rows in sentences.
ALL_ROWS = "all rows"
# Columns that identify a segment of a score.
ALL_KEYS = (*AUDIT_KEYS, MODEL)
# The rows of a segment, by class and decision; null without decisions or without a label.
SEGMENT_COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(ALL_KEYS, pl.String),
    **dict.fromkeys(("n", "n_pos", "n_neg", "n_missing", "n_decided", "n_selected"), pl.Int64),
    **dict.fromkeys(("w_pos", "w_neg", "threshold", "tp", "fp", "fn", "tn"), pl.Float64),
}
# The distribution of scores in a segment: a row for each bin.
DISTRIBUTION_SCHEMA = pl.Schema(
    {
        **dict.fromkeys(ALL_KEYS, pl.String()),
        "positive": pl.Boolean(),
        "bin": pl.Int64(),
        **dict.fromkeys(("bin_low", "bin_high"), pl.Float64()),
        "n": pl.Int64(),
        **dict.fromkeys(("weight", "share", "density", "cumulative"), pl.Float64()),
    }
)


def rows_with(table: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a table with these keys; null equals null."""
    return table.join(kept, on=kept.columns, how="semi", nulls_equal=True, maintain_order="left")


def name_of(segment: str | None) -> str:
    """Return the name of a segment, which may be null."""
    return MISSING if segment is None else segment


def segment_in_words(attribute: str, segment: str | None) -> str:
    """Return a segment in a sentence: ``race = black``, or ``Region 12`` of attribute region."""
    name, attribute = show_name(name_of(segment)), show_name(attribute)
    if attribute == OVERALL:
        return ALL_ROWS
    return name if repeats_attribute(attribute, name) else f"{attribute} = {name}"


def repeats_attribute(attribute: str, name: str) -> bool:
    """Return whether a name begins with its attribute: ``Region 12`` of attribute region."""
    rest = name.casefold().removeprefix(attribute.casefold())
    return len(rest) < len(name) and not rest[:1].isalnum()


@dataclass(frozen=True)
class GateCondition:
    """A condition on a column of a metric, in one place or in all."""

    place: str | None
    metric: str
    column: str
    sign: str
    limit: float | str


@dataclass(frozen=True)
class JudgedGate:
    """A condition, whether and where it is met, and where it could not be judged.

    ``lines`` say where it could not be judged and, if it was judged, whether it failed. Reports use
    ``condition`` and the rows of the table, for words of their own.
    """

    gate: str
    met: bool
    n_judged: int
    where: Sequence[str]
    not_judged: Sequence[str]
    lines: Sequence[str]
    # None for a condition in SQL.
    condition: GateCondition | None
    met_rows: Sequence[Mapping[str, Any]]
    unjudged_rows: Sequence[Mapping[str, Any]]

    @property
    def sentence(self) -> str:
        """The lines as one."""
        return ". ".join(self.lines)

    def as_dict(self) -> dict[str, Any]:
        """Return the gate as values for JSON."""
        names = ("gate", "met", "n_judged", "where", "not_judged", "sentence")
        return {name: getattr(self, name) for name in names}


class Further(NamedTuple):
    """Tables of further sections of reports, each of which may be empty."""

    # The results of `calibration_test`, for segments by themselves and against the rest.
    calibration: pl.DataFrame = pl.DataFrame()
    equal_scores: pl.DataFrame = pl.DataFrame()
    # The results of `calibration_curve` and `score_distribution`, for attributes with charts.
    calibration_curves: pl.DataFrame = pl.DataFrame()
    distributions: pl.DataFrame = pl.DataFrame()
    # The result of `compare` for pairs of scores.
    scores: pl.DataFrame = pl.DataFrame()
    # The result of `worst_segments`, and whether the audit names each segment.
    exploration: pl.DataFrame = pl.DataFrame()
    # Sentences on what was left out.
    left_out: Sequence[str] = ()


@dataclass(frozen=True, repr=False, eq=False)
class AuditTables:
    """The tables of an audit, and their origin."""

    table: pl.DataFrame
    segments: pl.DataFrame
    curves: pl.DataFrame
    missing: pl.DataFrame
    settings: AuditSettings
    run: Run = field(default_factory=Run)
    # Conditions of a pipeline, if there were any.
    gates: Sequence[JudgedGate] = ()
    # Distributions of the scores, in audits without a label.
    distributions: pl.DataFrame = field(default_factory=DISTRIBUTION_SCHEMA.to_frame)
    # Computes the details when it is first called, for example by a report.
    further: Callable[[], Further] = Further
    # Attributes whose groups have an order, for example ranges.
    ordered: Sequence[str] = ()

    @cached_property
    def wide_table(self) -> pl.DataFrame:
        """The segments, whether they are ``small``, and each metric with its limits."""
        table = self.table.filter(~pl.col("metric").is_in([*FAIRNESS]))
        names = {
            f"{part}_{metric}": f"{metric}{part.removeprefix('value')}"
            for part in VALUES
            for metric in table["metric"].unique()
        }
        wide = table.pivot("metric", index=list(ALL_KEYS), values=list(VALUES)).rename(names)
        return with_columns_of(with_small(self.segments, self.settings.min_rows), wide)


def with_tables(audit: AuditTables, change: Callable[[pl.DataFrame], pl.DataFrame]) -> AuditTables:
    """Return an audit with a function applied to each table that has segments."""
    return replace(
        audit,
        table=change(audit.table),
        segments=change(audit.segments),
        curves=change(audit.curves),
        distributions=change(audit.distributions),
    )


def restrict_audit(audit: AuditTables, kept: pl.DataFrame) -> AuditTables:
    """Return an audit with only the rows with these keys in all tables."""
    return with_tables(audit, lambda table: rows_with(table, kept))


# The columns of a metric about the segment itself, and about its reference.
VALUES = ("value", "value_low", "value_high")
COMPARED = (
    *(
        "reference_value",
        "gap",
        "gap_low",
        "gap_high",
        "ratio",
        "ratio_low",
        "ratio_high",
    ),
    *("p_value", "p_adjusted", "detectable", "verdict"),
)


def with_columns_of(table: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return a table with another table's columns for the same segment and score."""
    return table.join(other, on=list(ALL_KEYS), how="left", nulls_equal=True, maintain_order="left")


def without_model(table: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Return a table without the name of the only score."""
    return table if settings.several else table.drop(MODEL, strict=False)


def with_small(segments: pl.DataFrame, min_rows: int) -> pl.DataFrame:
    """Add the column ``small``: too few rows in a class or, without classes, in all."""
    few = pl.coalesce(pl.min_horizontal("n_pos", "n_neg"), "n") < min_rows
    return segments.with_columns(small=few.fill_null(value=True))
