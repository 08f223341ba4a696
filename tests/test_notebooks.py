"""Notebooks show without being run, say what they show, and what is stored is what they do today.

The same holds for the pictures that are drawn from them.
"""

from __future__ import annotations

import base64
import re
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fill_notebooks import executed, read
from fill_pictures import CHARTS, REPORT, report_picture
from fill_site import page_of
from pictures import share_that_differs, size_of
from polars.testing import assert_frame_equal
from site_navigation import MADE, MADE_FILES, NOTEBOOKS

import polars_wroc as wroc

FOLDER = NOTEBOOKS[0].parent
NAMES = [path.stem for path in NOTEBOOKS]
# What a notebook may contain beside text; others, such as charts as data, do not show everywhere.
KINDS = {"text/plain", "text/html", "image/png"}
# Levels, chance, certainty and hundreds, which every reader knows.
KNOWN = {0, 0.5, 0.95, 1, 100}
# Of the pixels: where letters have other edges in another version of the program that draws them.
SAME = 0.005

_NUMBER = re.compile(r"(?<![\w./])(\d+(?:,\d{3})*(?:\.\d+)?)(?![\w/])")
# Parts of a text in which numbers are no results.
_NO_RESULTS = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|^#.*?$|step \d+", re.DOTALL | re.MULTILINE)


def _outputs(notebook: Any) -> Iterator[Any]:
    for cell in notebook.cells:
        yield from cell.get("outputs", [])


def _text_of(output: Any) -> str:
    return str(output.get("text") or output.get("data", {}).get("text/plain", ""))


def _texts(notebook: Any) -> list[str]:
    return [
        re.sub(r" object at 0x\w+|\.\.\.", "", _text_of(output)) for output in _outputs(notebook)
    ]


def _pictures(notebook: Any) -> list[bytes]:
    data = (output.get("data", {}) for output in _outputs(notebook))
    return [base64.b64decode(kinds["image/png"]) for kinds in data if "image/png" in kinds]


class Step(NamedTuple):
    """The text from one heading to the next, and its code with what that shows."""

    text: str
    shown: str


def _steps(notebook: Any) -> list[Step]:
    steps = [Step("", "")]
    for cell in notebook.cells:
        if cell.source.startswith("## "):
            steps.append(Step("", ""))
        text, shown = steps[-1]
        if cell.cell_type == "code":
            results = (_text_of(output) for output in cell.outputs)
            steps[-1] = Step(text, "\n".join([shown, cell.source, *results]))
        else:
            steps[-1] = Step(f"{text}\n\n{cell.source}", shown)
    return steps


def _numbers(text: str) -> set[str]:
    return {found.replace(",", "") for found in _NUMBER.findall(text)}


def _without_source(text: str, shown: str) -> list[str]:
    """Numbers of a text that are, rounded or in percent, none of those that are shown."""
    values = KNOWN | {float(number) for number in _numbers(shown)}
    values |= {100 * value for value in values}

    def known(number: str) -> bool:
        digits = len(number.partition(".")[2])
        # Half a unit in the last place, since what is shown has been rounded itself.
        return any(abs(value - float(number)) <= 0.51 * 10**-digits for value in values)

    return sorted(number for number in _numbers(_NO_RESULTS.sub("", text)) if not known(number))


@pytest.fixture(params=NOTEBOOKS, ids=NAMES)
def stored(request: pytest.FixtureRequest) -> Any:
    return read(request.param)


def test_was_run_from_top_to_bottom(stored: Any) -> None:
    counts = [cell.execution_count for cell in stored.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert all(cell.outputs for cell in stored.cells if cell.cell_type == "code")


def test_shows_tables_and_pictures_in_any_viewer(stored: Any) -> None:
    kinds = {kind for output in _outputs(stored) for kind in output.get("data", {})}
    assert "image/png" in kinds
    assert kinds <= KINDS
    assert {output.output_type for output in _outputs(stored)} <= {"execute_result", "stream"}
    assert {output.name for output in _outputs(stored) if output.output_type == "stream"} <= {
        "stdout"
    }


def test_shows_results_and_no_queries(stored: Any) -> None:
    text = "\n".join(_texts(stored))
    assert not re.search(r"LazyFrame|naive plan|optimized plan|FROM\b|\bSCAN\b|Expr\b", text)


def test_tables_are_short(stored: Any) -> None:
    longest = max(text.count("\n│") for text in _texts(stored))
    assert longest <= 10


def test_every_result_is_interpreted(stored: Any) -> None:
    """With what one should conclude from it, and what one may not."""
    for step in _steps(stored):
        if step.shown:
            assert "**Conclusion.** " in step.text
            assert "**Caution.** " in step.text


def test_numbers_in_the_text_are_results(stored: Any) -> None:
    """Numbers are those of a table or sentence of their step, or in its code."""
    steps = _steps(stored)
    everything = "\n".join(step.shown for step in steps)
    unknown = [_without_source(step.text, step.shown or everything) for step in steps]
    assert unknown == [[]] * len(steps)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_pages_of_the_site_show_notebooks_whole(path: Path, tmp_path: Path) -> None:
    page = page_of(path, tmp_path).read_text(encoding="utf-8")
    notebook = read(path)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert re.findall(r"^```python\n(.*?)\n```$", page, re.DOTALL | re.MULTILINE) == code
    pictures = re.findall(r"^!\[(.+)\]\((\w+\.png)\)(?:\{ \.chart \})?$", page, re.MULTILINE)
    described, shown = zip(*pictures, strict=True)
    assert [(tmp_path / name).read_bytes() for name in shown] == _pictures(notebook)
    assert len({*described}) == len(described)
    assert page.count("</table>") == str(notebook).count("</table>")
    assert "**Caution.**" not in page
    for link in re.findall(r"\]\(([\w./-]+\.md)\)", page):
        target = (MADE / link).resolve()
        assert target in MADE_FILES or target.exists()


@pytest.mark.slow(reason="runs notebooks")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_stored_results_are_those_of_today(path: Path, tmp_path: Path) -> None:
    """Results that differ are written by `fill_notebooks`; then the text must be read again."""
    copy = shutil.copytree(FOLDER, tmp_path / "notebooks")
    today, stored = executed(copy / path.name), read(path)
    assert _texts(today) == _texts(stored)
    pairs = zip(_pictures(today), _pictures(stored), strict=True)
    assert [share_that_differs(*pair) <= SAME for pair in pairs] == [True] * len(_pictures(stored))


@pytest.mark.slow(reason="runs notebooks")
@pytest.mark.parametrize("path", CHARTS, ids=lambda path: path.stem)
def test_pictures_are_those_of_today(path: Path) -> None:
    assert share_that_differs(CHARTS[path](), path.read_bytes()) <= SAME


@pytest.mark.slow(reason="runs notebooks")
@pytest.mark.browser
def test_picture_of_the_report_is_as_wide_as_today() -> None:
    """Its letters are those of the machine, so that its height and pixels differ."""
    assert size_of(report_picture())[0] == size_of(REPORT.read_bytes())[0]


@pytest.mark.slow(reason="runs notebooks")
@pytest.mark.parametrize("name", ["diabetes", "loans"])
def test_scripts_make_the_committed_data(name: str) -> None:
    made = runpy.run_path(str(FOLDER / f"make_{name}.py"))[name]()
    # Other versions of scikit-learn may move scores a little.
    assert_frame_equal(made, getattr(wroc.data, name)(), abs_tol=0.002)
