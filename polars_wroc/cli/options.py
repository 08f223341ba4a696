"""Options that commands share, and options that follow from the functions of the library."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from types import NoneType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import docstring_parser
import polars as pl
from cyclopts import ArgumentCollection, Group, Parameter, Token
from cyclopts.exceptions import RepeatArgumentError, UnknownOptionError

import polars_wroc
from polars_wroc.audits.gates import Gate, GateScope, Judgement, judge_gates, read_gate
from polars_wroc.audits.tables import Text
from polars_wroc.bounds import Bins, Confidence, Positive, find_number_type, list_alternatives
from polars_wroc.cli import values
from polars_wroc.config import MEMORY, Config, connect
from polars_wroc.inputs.columns import Frequency, IntoWeight
from polars_wroc.inputs.designs import Design, Lonely, Survey
from polars_wroc.looks import ConfidenceLevel, Looks

# The parts of the help, those that most calls need first.
HELP_PARTS = (
    "Input",
    "Groups",
    "Decisions",
    "Tests",
    "Conditions",
    "Output",
    "Wording",
    "Survey",
    "CSV files",
    "Large data",
)
INPUT, GROUPS, DECISIONS, TESTS, CONDITIONS, OUTPUT, WORDING, SURVEY, CSV_FILES, LARGE_DATA = (
    Group(name, sort_key=number) for number, name in enumerate(HELP_PARTS)
)
COLUMN = Parameter(metavar="COLUMN")
COLUMNS = Parameter(metavar="COLUMN...")
ColumnName = Annotated[str | None, COLUMN]
ReportWords = Annotated[str | None, Parameter(metavar="TEXT")]

Value = TypeVar("Value")


def add_bounds(said: str, hint: Any) -> str:
    """End the description of a number with its bounds, unless it states them."""
    number_type = find_number_type(hint)
    if number_type is None:
        return said
    bounds = number_type.bounds
    for phrase in (bounds.text, f"between {bounds.low:g} and {bounds.high:g}"):
        if re.search(rf"(?<![\w.-]){re.escape(phrase)}(?!\w|\.\d)", said):
            return said
    return f"{said.removesuffix('.')} ({bounds.text})."


def read_by(read: Callable[[str], Value]) -> Callable[[object, Sequence[Token]], Value]:
    """Return a converter for an option with one value."""

    def convert(_: object, tokens: Sequence[Token]) -> Value:
        if len(tokens) > 1:
            raise RepeatArgumentError(token=tokens[-1])
        return read(tokens[0].value)

    return convert


def read_all_by(read: Callable[[list[str]], Value]) -> Callable[[object, Sequence[Token]], Value]:
    """Return a converter for a repeatable option."""

    def convert(_: object, tokens: Sequence[Token]) -> Value:
        return read([token.value for token in tokens])

    return convert


# No candidates for "did you mean": the command line finds them itself.
_NO_CANDIDATES: ArgumentCollection = ArgumentCollection()  # type: ignore[no-untyped-call]


def _read_files(_: object, tokens: Sequence[Token]) -> list[str]:
    """Return names of files; only the standard input may begin with a hyphen."""
    for token in tokens:
        if token.value.startswith("-") and token.value != "-":
            raise UnknownOptionError(token=token, argument_collection=_NO_CANDIDATES)
    return [token.value for token in tokens]


FileNames = Annotated[
    list[str],
    Parameter(
        name="FILE",
        help="Parquet, Arrow, CSV, NDJSON or XLSX; a glob, a folder or a URL; - for the standard "
        "input.",
        converter=_read_files,
        allow_leading_hyphen=True,
        group=INPUT,
    ),
]
_CUTS = (
    "repeatable. age:18,30,50 cuts numbers into ranges: <18, 18-29, 30-49 and 50+; day:1mo cuts "
    "dates into months"
)
By = Annotated[
    Sequence[str],
    Parameter(
        metavar="COLUMN...",
        help=f"A group column; with several, each combination of their values is a group; {_CUTS}.",
        group=GROUPS,
    ),
]
Attributes = Annotated[
    Sequence[str],
    Parameter(
        name="--attribute",
        metavar="COLUMN...",
        help=f"An attribute, such as sex, whose segments are compared; {_CUTS}.",
        group=GROUPS,
    ),
]
THRESHOLD_HELP = (
    "Scores of at least this are selected; or median, or a rule: youden, closest-topleft, "
    "max-accuracy, max-fpr=R, min-tpr=R, max-selection-rate=R, or least-cost:fn=5,fp=1."
)
ThresholdOption = Annotated[
    Any,
    Parameter(
        help=THRESHOLD_HELP,
        converter=read_by(values.parse_threshold),
        n_tokens=1,
        metavar="NUMBER",
        group=DECISIONS,
    ),
]
Selected = Annotated[
    str | None,
    Parameter(
        metavar="COLUMN",
        help="Column of recorded decisions, true and false or 0 and 1; or its value of those "
        "who are selected, as in decision=hired.",
        group=DECISIONS,
    ),
]
UnknownCategories = Annotated[
    Sequence[str],
    Parameter(
        metavar="VALUE...",
        help="Which categories are unknown: exclude (the default), those without a value; keep, "
        "none; or further values, such as '' and 'not stated'; repeatable.",
        group=GROUPS,
    ),
]
FirstRun = Annotated[
    bool,
    Parameter(help="Succeed, and say so, if there is no file to compare with yet.", group=INPUT),
]
Approximate = Annotated[
    int | None,
    Parameter(
        help=add_bounds(
            "Fast, in little memory, with bounds of each AUC: use about this many bins of scores.",
            Bins,
        ),
        group=LARGE_DATA,
    ),
]
# Arguments of the library whose types cannot be parsed from text, or that are spelled differently
# here.
_ANNOTATIONS: dict[str, Any] = {
    "by": By,
    "attributes": Attributes,
    "threshold": ThresholdOption,
    "selected": Selected,
    "reference": Annotated[
        list[Any],
        Parameter(
            help="What segments are compared with: rest, overall, or a reference segment of each "
            "attribute, such as sex=m; repeatable.",
            converter=read_all_by(values.read_reference),
            metavar="SEGMENT...",
            group=GROUPS,
        ),
    ],
    "intersections": Annotated[
        bool | Literal["only"],
        Parameter(
            help="Compare the combinations of all attributes too, or with 'only' nothing else.",
            metavar="[only]",
            show_choices=False,
            group=GROUPS,
        ),
    ],
    "within": Annotated[
        list[str] | None,
        Parameter(
            metavar="COLUMN...",
            help="Column of strata such as jobs, in which groups are compared; repeatable.",
            group=GROUPS,
        ),
    ],
    "metrics": Annotated[
        list[str] | None,
        Parameter(
            help="Metrics, such as 'tpr,lift'; or 'all'.",
            converter=read_by(values.read_names),
            n_tokens=1,
            metavar="NAMES",
            group=OUTPUT,
        ),
    ],
    "bins": Approximate,
}
_GROUPS = {
    **dict.fromkeys(("favorable", "per_group"), DECISIONS),
    **dict.fromkeys(("min_rows", "min_share", "min_cell"), GROUPS),
    **dict.fromkeys(
        ("source", "distribution_date", "audit_date", "justification", "title"), WORDING
    ),
    **dict.fromkeys(("prevalence", "different_rows", "different_settings"), INPUT),
    **dict.fromkeys(
        ("diagnostics", "strategy", "smooth", "clip", "max_points", "band", "cost_fn", "cost_fp"),
        OUTPUT,
    ),
}


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights of rows."""

    weight: ColumnName = None
    """Column of weights: how much of a population a row represents."""
    frequency: ColumnName = None
    """Column of weights that count rows: how many a row is."""

    @property
    def column(self) -> IntoWeight | None:
        """The column of weights, if there is one."""
        if self.weight is not None and self.frequency is not None:
            msg = "--weight and --frequency exclude each other"
            raise ValueError(msg)
        return self.weight if self.frequency is None else Frequency(self.frequency)


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class RowColumns:
    """Columns of the labels, scores and weights of rows."""

    label: ColumnName = None
    """Column of the labels, which files of counts do not need."""
    score: Annotated[list[str], COLUMNS] = field(default_factory=list)
    """Column of a score, which files of counts do not need; higher means more positive;
    repeatable."""
    pos_label: Annotated[str | None, Parameter(metavar="VALUE")] = None
    """Positive value of other labels than 0 and 1, such as yes."""
    weights: Weights = Weights()

    @property
    def option_values(self) -> dict[str, str | list[str] | None]:
        """The value of each option."""
        named = {"label": self.label, "score": self.score, "pos-label": self.pos_label}
        return {**named, **vars(self.weights)}


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class UnlabeledColumns(RowColumns):
    """Scores and weights of rows; a label is parsed only to be refused with the reason."""

    label: Annotated[str | None, Parameter(show=False)] = None
    pos_label: Annotated[str | None, Parameter(show=False)] = None


@Parameter(name="*", group=SURVEY)
@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """The basis of confidence limits: their level, and the sample design."""

    level: Annotated[
        float, Parameter(help=add_bounds("Confidence level.", Confidence), group=TESTS)
    ] = 0.95
    planned: Annotated[
        float | None,
        Parameter(
            name="--looks",
            help=add_bounds(
                "Keep limits valid however often growing data are checked; they are tightest at "
                "this many rows.",
                Positive,
            ),
            group=TESTS,
            metavar="ROWS",
        ),
    ] = None
    cluster: ColumnName = None
    """Column of clusters or sampling units: rows with the same value belong together."""
    strata: ColumnName = None
    """Column of the strata of a survey."""
    fpc: ColumnName = None
    """Column of the finite population correction: the proportion of a stratum's sampling units
    that was sampled, or their number in the population."""
    lonely: Lonely | None = None
    """What the only sampling unit of a stratum adds to a variance: by default (null) the variance
    is unknown; certainty adds nothing; adjust adds the unit's squared distance from the mean of all
    units."""
    replicate_weights: Annotated[
        Any,
        Parameter(converter=read_by(values.read_replicate_weights), n_tokens=1, metavar="COLUMNS"),
    ] = None
    """Columns of replicate weights and how they were made: such as 'rep_*:kind=jk2', or
    a,b,c:kind=fay,rho=0.3,df=60; df are the degrees of freedom: sampling units less strata."""

    @property
    def design(self) -> Design | None:
        """The design of the survey, if there is one."""
        names = ("cluster", "strata", "fpc", "lonely")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.replicate_weights is not None:
            if given:
                msg = f"--replicate-weights excludes --{next(iter(given))}"
                raise ValueError(msg)
            return self.replicate_weights  # type: ignore[no-any-return]
        if [*given] == ["cluster"]:
            return self.cluster
        return Survey(**given) if given else None

    @property
    def confidence(self) -> ConfidenceLevel:
        """The level, for one look or for all."""
        return self.level if self.planned is None else Looks(self.planned, self.level, "count")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the library's functions."""
        design = self.design
        return {"level": self.confidence} | ({} if design is None else {"design": design})


@Parameter(name="*", group=LARGE_DATA)
@dataclass(frozen=True, kw_only=True)
class Resources:
    """The memory and the cluster that a table is computed with."""

    memory: Annotated[str | None, Parameter(metavar="SIZE")] = None
    """Memory limit: 4GB, 60% of what the process may use (the default), or none; rows that would
    take more are computed in ranges of scores."""
    dask: Annotated[str | None, Parameter(metavar="ADDRESS")] = None
    """Address of the scheduler of a Dask cluster, whose workers read the ranges."""

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Compute tables in this memory and on this cluster."""
        memory = self.memory or (None if os.environ.get(MEMORY) else "60%")
        client = nullcontext() if self.dask is None else connect("dask", self.dask)
        with client as connected, Config(memory=memory, client=connected):
            yield


@Parameter(name="*", group=CONDITIONS)
@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Conditions that fail a command in a pipeline."""

    fail_if: Annotated[list[str], Parameter(metavar="CONDITION...")] = field(default_factory=list)
    """Exit with 1 if this holds in any segment: a number of the table and a limit, or a condition
    in SQL on the columns of the table, as in the examples; repeatable."""
    fail_unjudged: bool = False
    """Exit with 3 if a condition of --fail-if cannot be judged in some segment."""

    def read(self, of: GateScope) -> list[Gate]:
        """Read the conditions on a table."""
        return [read_gate(text, of) for text in self.fail_if]

    def judge(self, gates: Sequence[Gate], table: pl.DataFrame) -> Judgement:
        """Judge the conditions that were read."""
        return replace(judge_gates(gates, table), strict=self.fail_unjudged)


@Parameter(name="*", group=WORDING)
@dataclass(frozen=True, kw_only=True)
class Wording:
    """Title and note of a report, and the words of its sentences."""

    title: ReportWords = None
    """Title of the report."""
    note: ReportWords = None
    """What readers of the report should know about its rows."""
    positive: ReportWords = None
    """What people of the positive class are, such as repaid."""
    negative: ReportWords = None
    """What people of the negative class are, such as 'in default'."""
    selected_word: ReportWords = None
    """What people are who are selected, such as hired."""
    rejected_word: ReportWords = None
    """What people are who are not selected, such as turned down."""
    people: ReportWords = None
    """What the rows are, in the plural, such as applicants."""
    group_words: Annotated[
        list[Any] | None,
        Parameter(converter=read_all_by(values.read_group_words), metavar="WORDS..."),
    ] = None
    """What the groups of an attribute are called, with {} for the value, such as
    'region=applicants in {}'; repeatable."""

    @property
    def text(self) -> Text:
        """The words as the library takes them."""
        return Text(
            title=self.title,
            note=self.note,
            positive=self.positive,
            negative=self.negative,
            selected=self.selected_word,
            rejected=self.rejected_word,
            people=self.people,
            groups=None if self.group_words is None else dict(self.group_words),
        )


def with_arguments_of(
    function: Callable[..., Any], names: str, **helps: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add arguments of a function of the library as options of a command.

    Their types, bounds, defaults and descriptions are those of the function; ``helps`` replace
    descriptions, but not those of options that this module defines.
    """
    if unused := [name for name in helps if name in _ANNOTATIONS or name not in names.split()]:
        msg = f"`{function.__name__}` uses no help for {', '.join(unused)}; remove it"
        raise ValueError(msg)
    signature = inspect.signature(function)
    hints = get_type_hints(inspect.unwrap(function), include_extras=True)

    def describe(name: str) -> inspect.Parameter:
        default = signature.parameters[name].default
        annotation = _ANNOTATIONS.get(name)
        if annotation is None:
            said = helps.get(name) or _describe(function, name)
            about = Parameter(help=add_bounds(said, hints[name]), group=_GROUPS.get(name, TESTS))
            annotation = Annotated[_readable(hints[name]), about]
        return inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = [
            each
            for each in inspect.signature(command, eval_str=True).parameters.values()
            if each.kind is not each.VAR_KEYWORD
        ]
        parameters += [describe(name) for name in names.split()]

        @wraps(command)
        def run(*args: Any, **kwargs: Any) -> None:
            bound = inspect.Signature(parameters).bind(*args, **kwargs)
            bound.apply_defaults()
            command(*bound.args, **bound.kwargs)

        del vars(run)["__wrapped__"]
        vars(run)["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _readable(hint: Any) -> Any:
    """Keep only the types that text can be parsed to, without bounds, which the library checks."""
    kinds = [
        get_args(kind)[0] if get_origin(kind) is Annotated else kind
        for kind in list_alternatives(hint)
    ]
    readable = [
        kind
        for kind in kinds
        if kind in (bool, int, float, str, NoneType) or get_origin(kind) is Literal
    ]
    if not {*readable} - {NoneType}:
        return hint
    return Union[tuple(readable)]  # noqa: UP007  (X | Y cannot be written for a list of types)


_ELSEWHERE = re.compile(r"As for `(\w+)`|.* see `(\w+)`\.$")
_SENTENCE_END = re.compile(r"(?<=\.)(?<!e\.g\.)(?<!i\.e\.) ")


@cache
def _describe(function: Callable[..., Any], name: str) -> str:
    """Return the first sentence on an argument, following references such as "As for `audit`"."""
    followed: list[str] = []
    while function.__name__ not in followed:
        followed.append(function.__name__)
        said = _read_first_sentence(function, name)
        elsewhere = _ELSEWHERE.match(said)
        if elsewhere is None:
            return said
        function = getattr(polars_wroc, elsewhere[1] or elsewhere[2])
    msg = f"the docstrings of {' and '.join(followed)} describe `{name}` only by each other"
    raise ValueError(msg)


def _read_first_sentence(function: Callable[..., Any], name: str) -> str:
    """Return the first sentence of the description of an argument."""
    parsed = docstring_parser.parse(
        function.__doc__ or "", docstring_parser.DocstringStyle.NUMPYDOC
    )
    for parameter in parsed.params:
        if name in parameter.arg_name.split(", "):
            description = " ".join((parameter.description or "").split())
            return _SENTENCE_END.split(description)[0].replace("``", "").replace('"', "")
    msg = f"the docstring of `{function.__name__}` does not describe `{name}`"
    raise ValueError(msg)
