"""What fits a terminal, and help: usage, what must be given, and an example of each command."""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import shlex
import sys
from itertools import chain
from pathlib import Path
from typing import Annotated, get_args, get_type_hints

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import confusion_matrix, roc_curve

import polars_wroc as wroc
from polars_wroc.bounds import AtLeast, FiniteNumber, InnerProportion, Proportion, WeightLimit
from polars_wroc.cli import main
from polars_wroc.cli.app import app
from polars_wroc.cli.catalog import COMMANDS
from polars_wroc.cli.options import add_bounds, with_arguments_of

COLUMNS = ["--label", "y", "--score", "s"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with rows of a hundred groups in it."""
    rows = {"y": [0, 1, 1, 0] * 100, "s": [*range(400)], "g": [k // 4 for k in range(400)]}
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


LOANS = ("loans.parquet", "--label", "approved", "--score", "score")
DECIDED = (*LOANS, "--attribute", "race", "--threshold", "0.85")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def loans(folder: Path) -> Path:
    wroc.data.loans().write_parquet(folder / "loans.parquet")
    return folder


def printed(monkeypatch: pytest.MonkeyPatch, lines: int, *call: str) -> list[str]:
    """Return the lines that a command prints on a terminal without colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    return shown(monkeypatch, lines, *call).splitlines()


def shown(monkeypatch: pytest.MonkeyPatch, lines: int, *call: str) -> str:
    """Return what a command prints on a terminal."""
    terminal = Terminal()
    size = os.terminal_size((80, lines))
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_: size)
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main([*call]) == 0
    return terminal.getvalue()


AUC = ("auc", "rows.parquet", *COLUMNS, "--by", "g")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("lines", [5, 24, 60, 200])
def test_rows_beyond_a_screen_are_counted(lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = printed(monkeypatch, lines, *AUC)
    rows = min(max(lines - 8, 10), 100)
    # The heading has two lines.
    assert len(found) == rows + 3
    said = "all 11 columns: --columns all"
    assert found[-1] == (f"{100 - rows} more rows: --rows all; {said}" if rows < 100 else said)
    assert len(printed(monkeypatch, lines, *AUC, "--rows", "all")) == 103
    assert len(printed(monkeypatch, lines, *AUC, "--rows", "3")) == 6


@pytest.mark.usefixtures("folder")
def test_elsewhere_all_rows_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*AUC]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 103


@pytest.mark.usefixtures("folder")
def test_an_audit_of_many_groups_sums_up_those_that_do_not_differ(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = ["audit", "rows.parquet", *COLUMNS, "--attribute", "g", "--min-rows", "0"]
    assert main(call) == 0
    assert "100 groups, inconclusive or alike" in capsys.readouterr().out
    assert main([*call, "--rows", "5"]) == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_that_can_be_copied(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: polars-wroc {command} ")
    about = COMMANDS[command]
    # No line of it is wrapped on a narrow terminal.
    assert all(f"\n    {line}\n" in text for line in about.example.splitlines())
    assert " ".join(about.text.split()) in " ".join(text.split())
    program, *arguments = shlex.split(about.example.replace("\\\n", " "))
    assert program == "polars-wroc"
    # Its options are those that there are.
    called, _, _ = app.parse_args(arguments)
    assert called.__name__ == command.replace("-", "_")


@pytest.mark.parametrize(
    ("command", "required"),
    [("audit", ["FILE", "--attribute"]), ("auc", ["FILE"]), ("diff", ["BEFORE", "AFTER"])],
)
def test_what_must_be_given_is_marked(
    command: str, required: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    marked = re.findall(r"│ \*  (\S+)", capsys.readouterr().out)
    assert marked == required


@pytest.mark.usefixtures("loans")
def test_verdicts_have_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    colored = shown(monkeypatch, 50, "gaps", *DECIDED)
    assert "  \x1b[1mdifferent\x1b[0m" in colored
    assert "  inconclusive" in colored
    assert "\n\x1b[1mrace      metric" in colored
    colored = shown(
        monkeypatch, 50, "impact", *DECIDED[:1], *DECIDED[3:], "--favorable", "selected"
    )
    assert "  \x1b[1;38;5;166mbelow four fifths\x1b[0m" in colored
    colored = shown(monkeypatch, 50, "gaps", *DECIDED)
    plain = "\n".join(printed(monkeypatch, 50, "gaps", *DECIDED))
    assert _STYLE.sub("", colored).rstrip() == plain
    assert not _STYLE.search(plain)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("variables", "terminal", "colored"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
    ],
)
def test_variables_switch_colours(
    variables: dict[str, str], terminal: bool, colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"WT_SESSION": "1"} | variables).items():
        monkeypatch.setenv(name, value)
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, Terminal() if terminal else io.StringIO())
    assert main(["auc", "rows.parquet", *COLUMNS]) == 0
    assert main(["auc", "rows.parquet", *COLUMNS, "--by", "h"]) == 2
    # Headings are bold and notes dim; errors begin in bold red.
    for text, styles in ((sys.stdout, ["1", "2", "0"]), (sys.stderr, ["1;31", "0"])):
        shown = set(_STYLE.findall(text.getvalue()))  # type: ignore[union-attr]
        assert shown == ({f"\x1b[{style}m" for style in styles} if colored else set())


@pytest.mark.usefixtures("loans")
def test_files_have_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    for name in ("a.md", "a.csv"):
        shown(monkeypatch, 50, "gaps", *DECIDED, "-o", name)
        assert "\x1b" not in Path(name).read_text(encoding="utf-8")
    assert "\x1b" not in shown(monkeypatch, 50, "gaps", *DECIDED, "-o", "-", "--format", "md")


def gap_of_black(loans: pl.DataFrame) -> float:
    """Return how many points fewer are selected than of all others."""
    rates = loans.group_by(pl.col("race") == "black").agg(pl.col("selected").mean()).sort("race")
    others, own = rates["selected"]
    return 100 * float(others - own)


@pytest.mark.usefixtures("loans")
def test_an_audit_says_who_is_worse_off_above_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    more = ("--attribute", "sex", "--favorable", "selected")
    lines = printed(monkeypatch, 60, "audit", *DECIDED, *more)
    loans = wroc.data.loans().with_columns(selected=pl.col("score") >= 0.85)
    words = " ".join(" ".join(lines).replace("\N{LEFT HALF BLOCK}", "").split())
    gap = f"{gap_of_black(loans):.0f}"
    assert "The group black (race) is selected less often: 56%, against 80%" in words
    assert f"else, {gap} points lower" in words
    (black,) = [line for line in lines if line.lstrip().startswith("black ")]
    assert f"56% ▼{gap}" in black
    assert any(line.startswith("  (missing)") for line in lines)


@pytest.mark.usefixtures("loans")
def test_gaps_of_all_metrics_and_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gaps", *DECIDED]) == 0
    out = capsys.readouterr().out
    # A pipe has no width: the sentence is one line, and no column is left out.
    sentence, _, heading, *rows = out.splitlines()
    assert sentence.startswith(
        "Different from the rest, in points: race black selection rate (\N{MINUS SIGN}24.4); "
        "race white negative predictive value (\N{MINUS SIGN}23.5);"
    )
    assert re.split(" {2,}", heading) == (
        ["race", "metric", "n", "value", "others", "difference", "result", "p, adjusted"]
    )
    table = wroc.group_gaps(
        wroc.data.loans(), "approved", "score", attributes="race", threshold=0.85
    )
    verdicts = ["different" in row for row in rows[: table.height]]
    assert verdicts == sorted(verdicts, reverse=True)
    assert sum(verdicts) == table.filter(verdict="different").height
    assert main(["gaps", *DECIDED, "--metric", "tpr"]) == 0
    out = capsys.readouterr().out
    assert "metric" not in out
    n_tests = table["p_value"].count()
    assert (
        f"Verdicts are adjusted for all {n_tests} tests of this command, of which 3 are shown; "
        "intervals are not adjusted."
    ) in out
    assert re.search("race +positives +true positive rate", out)


@pytest.mark.usefixtures("loans")
def test_a_curve_is_drawn_with_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["curve", *LOANS]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("tpr") + 1
    rows = [line[3:].ljust(61) for line in lines[start : start + 19]]
    drawn = np.argwhere(np.array([[*row] for row in rows]) == "*")
    loans = wroc.data.loans()
    fpr, tpr, _ = roc_curve(loans["approved"], loans["score"], drop_intermediate=False)
    for down, across in drawn:
        # The curve is a step function: along its corners it passes through the cell.
        away = np.maximum(abs(fpr * 60 - across), abs((1 - tpr) * 18 - down))
        assert away.min() < 1
    assert len({across for _, across in drawn}) == 61
    assert main(["curve", *LOANS, "--by", "race"]) == 0
    assert "\na black; b hispanic; c white\n" in capsys.readouterr().out
    for more in (["--rows", "2"], ["--kind", "pr"], ["--band", "pointwise"]):
        assert main(["curve", *LOANS, *more]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert any(line.startswith("threshold ") for line in lines[:5])


@pytest.mark.usefixtures("loans")
def test_calibrate_prints_bins_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    headings = []
    for more in ([], ["--bins", "4"], ["--strategy", "uniform"], ["--columns", "bin"]):
        assert main(["calibrate", *LOANS, *more]) == 0
        headings.append("\nbin" in capsys.readouterr().out)
    assert headings == [False, True, True, True]
    assert main(["calibrate", *LOANS, "--bins", "4", "-o", "-"]) == 0
    bins = pl.DataFrame(json.loads(capsys.readouterr().out))
    assert bins["n"].max() - bins["n"].min() <= 1  # type: ignore[operator]


@pytest.mark.usefixtures("loans")
def test_numbers_are_written_as_they_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["thresholds", *LOANS, "--threshold", "0.85", "--columns", "tp,tn,tpr"]) == 0
    _, row = capsys.readouterr().out.splitlines()
    loans = wroc.data.loans()
    counts = confusion_matrix(loans["approved"], loans["score"] >= 0.85)
    assert row.split()[:2] == [f"{counts[1, 1]:,}", f"{counts[0, 0]:,}"]
    assert main(["gaps", *DECIDED, "--metric", "npv", "--columns", "gap,p_value"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2:] for line in lines[-3:]] == [
        ["+0.203", "<0.001"],
        ["+0.205", "0.011"],
        ["\N{MINUS SIGN}0.235", "<0.001"],
    ]
    call = ["size", "--metric", "auc", "--value", "0.9", "--prevalence", "0.5", "--gap", "0.95"]
    assert main(call) == 0
    assert "not reachable" in capsys.readouterr().out


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("demo", "diff")])
def test_help_is_in_groups(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    headings = re.findall(r"^╭─ ([\w ]+?) ─", capsys.readouterr().out, re.MULTILINE)
    parts = ["Input", "Groups", "Decisions", "Tests", "Conditions", "Output", "Wording", "Survey"]
    parts += ["CSV files", "Large data"]
    assert headings == [part for part in parts if part in headings]
    assert headings[0] == "Input"
    assert "Output" in headings


@pytest.mark.parametrize(
    ("command", "option", "bounds"),
    [
        ("auc", "--approximate", "(16 or more)"),
        ("auc", "--level", "(from 0.001 to 0.9999)"),
        ("auc", "--looks", "(more than 0)"),
        ("audit", "--margin", "between 0 and 1."),
        ("calibrate", "--bins", "(1 or more)"),
        ("counts", "--bins", "(16 or more)"),
        ("curve", "--approximate", "(16 or more)"),
        ("curve", "--cost-fn", "(0 or more)"),
        ("curve", "--prevalence", "(above 0 and below 1)"),
        ("size", "--deff", "(more than 0)"),
    ],
)
def test_help_of_a_number_states_its_bounds(
    command: str, option: str, bounds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    rows = re.split(r"\n│ (?:[* ]  )?(?=--)|\n╰", capsys.readouterr().out)
    (row,) = [each for each in rows if each.startswith(f"{option} ")]
    assert " ".join(row.replace("│", " ").split()).count(bounds) == 1


@pytest.mark.parametrize(
    ("said", "hint", "expected"),
    [
        ("Limit of weights; 1 is no change.", WeightLimit, "{} (1 or more)."),
        ("Rows, best 11 or more.", WeightLimit, "{} (1 or more)."),
        ("A number.", FiniteNumber, "{} (any finite number)."),
        ("A number.", Annotated[float, AtLeast(-1)], "{} (-1 or more)."),
        ("A number, -1 or more.", Annotated[float, AtLeast(-1)], "{}."),
        ("A share between 0 and 1.", InnerProportion, "{}."),
        ("A share, 0 or 1 for none or all.", Proportion | None, "{} (from 0 to 1)."),
        ("A text.", str, "{}."),
    ],
)
def test_bounds_are_added_unless_stated(said: str, hint: object, expected: str) -> None:
    assert add_bounds(said, hint) == expected.format(said.removesuffix("."))


def test_helps_that_options_cannot_show_are_refused() -> None:
    rule = "`audit` uses no help for {}; remove it"
    # --intersections is described with the options that commands share.
    with pytest.raises(ValueError, match=rule.format("intersections")):
        with_arguments_of(wroc.audit, "intersections margin", intersections="Combinations.")
    with pytest.raises(ValueError, match=rule.format("adjust")):
        with_arguments_of(wroc.audit, "margin", adjust="Adjustment.")


def test_options_follow_types_and_docstrings(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(limit: int, design: wroc.Survey | None, other: int, text: str) -> None:
        """Do something.

        Parameters
        ----------
        limit
            As for `second`.
        design
            Sample design. More of it.
        text
            A name, e.g. of a column. More of it.
        """

    def second(limit: int) -> None:
        """Do something.

        Parameters
        ----------
        limit
            As for `first`.
        """

    def command(**given: object) -> None:
        pass

    first.__annotations__ = get_type_hints(first, globals() | {"wroc": wroc})
    monkeypatch.setattr(wroc, "first", first, raising=False)
    monkeypatch.setattr(wroc, "second", second, raising=False)
    known = inspect.signature(with_arguments_of(first, "design text")(command)).parameters
    kind, about = get_args(known["design"].annotation)
    assert (kind, about.help) == (wroc.Survey | None, "Sample design.")
    assert get_args(known["text"].annotation)[1].help == "A name, e.g. of a column."
    loop = "the docstrings of first and second describe `limit` only by each other"
    with pytest.raises(ValueError, match=loop):
        with_arguments_of(first, "limit")(command)
    with pytest.raises(ValueError, match="the docstring of `first` does not describe `other`"):
        with_arguments_of(first, "other")(command)


def test_help_of_all_commands_lists_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = re.findall(r"^│ ([a-z][a-z-]+)  +\w", capsys.readouterr().out, re.MULTILINE)
    assert sorted(listed) == sorted({*COMMANDS})


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_exit_codes_and_the_documentation(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    end = capsys.readouterr().out.rpartition("╯")[2]
    assert "Exit codes: 0 done, 1 condition met, 2 error, 3 not judged" in end
    assert end.strip().endswith("Documentation: https://pypi.org/project/polars-wroc")


# Values for what the usage names.
VALUES = {
    "--label": "y",
    "--score": "s",
    "--attribute": "g",
    "--selected": "y",
    "--favorable": "selected",
    "--source": "All rows",
    "--distribution-date": "2026-01-15",
    "--threshold": "0.5",
    "--over": "day",
    "--old": "s",
    "--new": "t",
    "--output": "x.csv",
}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("demo", "diff")])
def test_usage_names_all_that_must_be_given(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    rows = {"s": random.random(400), "t": random.random(400), "g": random.integers(0, 2, 400)}
    frame = pl.DataFrame(rows).with_columns(y=pl.col("s") > 0.4, day=pl.int_range(400) // 100)
    frame.write_parquet("rows.parquet")
    options = re.findall(r"--[\w-]+", COMMANDS[command].required)
    pairs = [[option, VALUES[option]] for option in options]
    if command == "compare":
        pairs[-1] = ["--score", "t"]
    if command == "size":
        assert options == []
        return
    assert main([command, "rows.parquet", *chain.from_iterable(pairs)]) == 0
    assert main([command, *chain.from_iterable(pairs)]) == 2
    for left_out in pairs:
        others = [pair for pair in pairs if pair != left_out]
        assert main([command, "rows.parquet", *chain.from_iterable(others)]) == 2


def test_options_are_read_from_a_file_and_from_variables(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "wroc.toml").write_text(
        'label = "y"\nscore = ["s"]\n\n[audit]\nattribute = ["g"]\nmin-rows = 0\n'
        'fail-if = ["auc.value>0.999"]\n',
        encoding="utf-8",
    )
    assert main(["audit", "rows.parquet", "-o", "x.json"]) == 0
    saved = json.loads(Path("x.json").read_text(encoding="utf-8"))
    assert saved["gates"][0]["gate"] == "auc.value>0.999"
    # The command can be given again without the file.
    Path("wroc.toml").unlink()
    program, *words = shlex.split(saved["run"]["command"])
    assert program == "polars-wroc"
    assert main([*words, "-o", "y.json"]) == 0
    again = json.loads(Path("y.json").read_text(encoding="utf-8"))
    assert again["table"] == saved["table"]
    monkeypatch.setenv("POLARS_WROC_LABEL", "y")
    capsys.readouterr()
    assert main(["auc", "rows.parquet", "--score", "s", "-o", "-"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["n"] == 400


def test_demo_replaces_a_report_only_if_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    report = Path("report.html")
    report.write_text("mine", encoding="utf-8")
    assert main(["demo"]) == 2
    said = "report.html exists already; name another file with -o, or the same to replace it"
    assert capsys.readouterr().err == f"polars-wroc: {said}\n"
    assert report.read_text(encoding="utf-8") == "mine"
    assert main(["demo", "-o", "report.html"]) == 0
    assert "loans" in report.read_text(encoding="utf-8")
