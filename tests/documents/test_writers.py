"""Documents: one list of blocks in three formats, whatever the names in it are."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from polars_wroc.documents.blocks import (
    Beside,
    Block,
    Cell,
    Column,
    Dots,
    Figure,
    Figures,
    Fold,
    Line,
    Lines,
    Row,
    Sign,
    Table,
    TextBlock,
)
from polars_wroc.documents.html_writer import write_html
from polars_wroc.documents.markdown_writer import write_markdown
from polars_wroc.documents.notebook import write_for_notebook
from polars_wroc.documents.phrases import write_list
from polars_wroc.documents.text_writer import Terminal, text_width, write_text

GROUPS = Table(
    [
        Column("Group"),
        Column("Rows", essential=True),
        Column("", style="plot", axis=[(10, "50%"), (90, "90%")]),
        Column("Selected", essential=True),
        Column("positives", over="Selected among"),
    ],
    [
        Row("Everyone", [Cell("1,989"), Cell(dots=Dots([70])), Cell("77%"), Cell("82%")], "all"),
        Row("race", kind="group"),
        Row(
            "black",
            [
                Cell("197"),
                Cell(dots=Dots([20], interval=(10, 30), other=80, fifths=55, tone="worse")),
                Cell("56%", "▼24", "worse"),
                Cell("65%", "≈", "alike"),
            ],
        ),
        Row("white", [Cell("1,681"), Cell(dots=Dots([80])), Cell("81%"), Cell("84%")]),
    ],
    "All groups at a glance",
    legend=[Sign("everyone else", part="other"), Sign("worse", Cell("56%", "▼24", "worse"))],
    note="2 groups",
)
DOCUMENT: list[Block] = [
    TextBlock("Audit", 1),
    TextBlock(
        "56%, against 80%.", style="answer worse", lead="Black applicants are selected less often:"
    ),
    Lines([Line("in race", "failed", "Failed: gap below 0.1"), Line("plain")], "Checks"),
    GROUPS,
    Figures([Figure('<svg width="1"></svg>', "AUC of 0.8", "higher is better", "a curve")]),
    Fold("How this was measured", [TextBlock("By weights.")]),
    Fold("All numbers", [TextBlock("1,000 numbers")], "Numbers are in the CSV file."),
    Beside([[TextBlock("left")], [TextBlock("right")]]),
]


def test_a_terminal_shows_the_document() -> None:
    assert write_text(DOCUMENT, Terminal(90)).splitlines() == [
        "Audit",
        "▌ Black applicants are selected less often: 56%, against 80%.",
        "",
        "Checks",
        "✗ Failed: gap below 0.1 in race",
        "• plain",
        "",
        "All groups at a glance",
        "│ everyone else · 56% ▼24 worse",
        "                                                        Selected",
        "                                                           among",
        "Group      Rows   50%                 90%    Selected  positives",
        "Everyone  1,989                    ○          77%          82%",
        "race",
        "  black     197    ───●───     ┊     │        56% ▼24      65% ≈",
        "  white   1,681                      ○        81%          84%",
        "2 groups",
        "",
        "• AUC of 0.8",
        "",
        "How this was measured",
        "By weights.",
        "",
        "Numbers are in the CSV file.",
        "",
        "left",
        "",
        "right",
    ]


def test_a_narrow_terminal_leaves_out_columns_but_not_the_essential_ones() -> None:
    lines = write_text([GROUPS], Terminal(38)).splitlines()
    assert "  black     197   56% ▼24      65% ≈" in lines
    assert lines[-2:] == ["2 groups; 1 more column in a wider", "terminal"]
    narrow = write_text([GROUPS], Terminal(22)).splitlines()
    assert "  b…k    197   56% ▼24" in narrow
    assert "2 groups; 2 more" in narrow


def test_names_are_not_cut_to_the_same_letters() -> None:
    names = ["predictive equality difference", "predictive parity difference"]
    columns = [Column("group"), Column("metric", style="name", essential=True)]
    rows = [Row("people who never married", [Cell(name)]) for name in names]
    _, first, second = write_text([Table(columns, rows)], Terminal(32)).splitlines()
    assert first != second


def test_columns_that_do_not_fit_are_below_the_others_on_request() -> None:
    lines = write_text([GROUPS], Terminal(38, below=True)).splitlines()
    blacks = [line for line in lines if " 197 " in line]
    assert [line.endswith(("│", "65% ≈")) for line in blacks] == [True, True]
    assert not any("more column" in line for line in lines)


def test_colors_are_only_in_colored_terminals() -> None:
    plain = write_text(DOCUMENT, Terminal(90))
    colored = write_text(DOCUMENT, Terminal(90, colored=True))
    assert "\x1b[1;38;5;166m56% ▼24\x1b[0m" in colored
    assert "\x1b[1mBlack applicants are selected less often:\x1b[0m 56%" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain


def test_markdown_shows_the_document() -> None:
    assert (
        write_markdown(DOCUMENT)
        == """\
# Audit

**Black applicants are selected less often:** 56%, against 80%.

**Checks**

- **Failed: gap below 0.1** in race
- plain

## All groups at a glance

56% ▼24 worse

| Group | Rows | Selected | Selected among positives |
| --- | ---: | ---: | ---: |
| Everyone | 1,989 | 77% | 82% |
| **race** |  |  |  |
| black | 197 | 56% ▼24 | 65% ≈ |
| white | 1,681 | 81% | 84% |

2 groups

- AUC of 0.8

## How this was measured

By weights.

Numbers are in the CSV file.

left

right
"""
    )


class _Balance(HTMLParser):
    """The tags of a page, each of which is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def _parse(html: str) -> _Balance:
    page = _Balance()
    page.feed(html)
    page.close()
    assert page.open == []
    return page


def test_html_closes_what_it_opens_and_says_tones() -> None:
    html = write_html(DOCUMENT)
    page = _parse(html)
    assert page.tags.count("tr") == len(GROUPS.rows) + 2
    assert "56% ▼worse, lower by 24" in page.text
    assert '<p class="answer worse"><b>Black applicants are selected less often:</b> 56%' in html
    assert '<svg role="img" aria-label="a curve" width="1">' in html
    assert '<th colspan="2"' not in html
    assert '<th colspan="1" scope="colgroup">Selected among</th>' in html


NAMES = [
    "<img src=x onerror=alert(1)>",
    "</style><script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "{who} %s {0.__class__}",
    "a|b",
    "[a](javascript:alert(1))",
    "# a\n\n- b\n| c |",
    "`a` ~~b~~ **c** &amp;",
    "\x1b[2Jbell\x07 and \x9b31m",
    "nul\x00 and \ud800",
    "\u202egnp.exe",
    "two\rlines\u2028and\u2029more\x85",
]


def _of_name(name: str) -> list[Block]:
    """Make a document that has a name wherever a text can be."""
    cell = Cell(name, f"▼{name}", "worse")
    table = Table(
        [Column(name, name, over=name), Column(name, name, "left", name, [(0, name)])],
        [Row(name, kind="group"), Row(name, [cell])],
        name,
        name,
        [Sign(name, cell)],
        name,
    )
    return [
        TextBlock(name, 1, lead=name),
        TextBlock(name, lead=name),
        Lines([Line(name, "worse", name)], name),
        table,
        Figures([Figure("<svg ></svg>", name, name, name)]),
        Fold(name, [TextBlock(name)], name),
        Beside([[TextBlock(name)]]),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_inert_in_html(name: str) -> None:
    for write in (write_html, write_for_notebook):
        found, plain = write(_of_name(name)), write(_of_name("plain"))
        assert _parse(found).tags == _parse(plain).tags
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800]", found)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_inert_in_markdown(name: str) -> None:
    found, plain = write_markdown(_of_name(name)), write_markdown(_of_name("plain"))
    assert found.count("\n") == plain.count("\n")
    bare = re.sub(r"\\[\\`*_\[\]<>|#&~$]", "", found)
    for sign in "`[]<>&~_":
        assert sign not in bare
    assert [line.count("|") for line in bare.splitlines()] == [
        line.count("|") for line in plain.splitlines()
    ]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800]", found)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [20, 80])
def test_names_are_inert_in_a_terminal(name: str, width: int) -> None:
    found = write_text(_of_name(name), Terminal(width, colored=True))
    bare = re.sub(r"\x1b\[(?:1;38;5;166|38;5;32|[012])m", "", found)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028\u2029\ud800]", bare)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("- dash", r"\- dash"),
        ("+ plus", r"\+ plus"),
        ("1. item", r"1\. item"),
        ("12) item", r"12\) item"),
        ("---", r"\---"),
        ("===", r"\==="),
        ("-5 or 0.5", "-5 or 0.5"),
        ("0.5 of $x$", r"0.5 of \$x\$"),
    ],
)
def test_a_text_in_markdown_begins_no_list_and_is_no_rule(text: str, written: str) -> None:
    assert write_markdown([TextBlock(text)]) == f"{written}\n"
    assert write_markdown([Lines([Line(text)])]) == f"- {written}\n"


def test_wide_letters_take_two_columns_and_marks_none() -> None:
    names = ["日本国", "e\u0301", "plain"]
    table = Table(
        [Column("g"), Column("n", essential=True)], [Row(name, [Cell("1")]) for name in names]
    )
    lines = write_text([table], Terminal(80)).splitlines()
    assert lines == ["g       n", "日本国  1", "e\u0301       1", "plain   1"]
    cut = write_text([table], Terminal(8)).splitlines()
    assert cut[1] == "日本…  1"
    assert max(map(text_width, cut)) == 8


@pytest.mark.parametrize(
    ("parts", "most", "text"),
    [
        (["a"], None, "a"),
        (["a", "b"], None, "a and b"),
        (["a", "b", "c", "d"], None, "a, b, c and d"),
        (["a", "b", "c", "d"], 4, "a, b, c and d"),
        (["a", "b", "c", "d"], 3, "a, b and 2 others"),
    ],
)
def test_lists_end_with_and(parts: list[str], most: int | None, text: str) -> None:
    assert write_list(parts, most) == text
