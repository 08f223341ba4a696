"""The report of a run of mutants: how many were killed, and why the others survive."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import speed
from mutant_sites import PACKAGE, Plan

Result = Mapping[str, object]
EXPLAINED = Path(__file__).with_name("mutants_explained.toml")


def publish(plan: Plan, results: Sequence[Result], drawn: int, output: Path | None) -> None:
    """Print the report and write it to a file; ``drawn`` is the number of mutants to try."""
    sections = [
        "# Mutation testing",
        speed.machine(),
        _introduce(plan, results, drawn),
        "## Results",
        _count(results),
        "## Mutants that survive",
        _list_survivors(results),
    ]
    report = "\n\n".join(sections)
    print(report)
    if output:
        output.write_text(report + "\n", "utf-8")


def _introduce(plan: Plan, results: Sequence[Result], drawn: int) -> str:
    modules = ", ".join(f"`{name}`" for name in plan.modules)
    new = sum(bool(result.get("new")) for result in results)
    return f"""\
How good are the tests? A *mutant* is the package with one place changed: a sign, an operator, a
comparison, a number, a condition. If a test then fails, the mutant is *killed*. If none does, the
*survivor* is either equivalent, since the change makes no difference to any result, or the tests
have a gap. [cosmic-ray](https://cosmic-ray.readthedocs.io) makes the mutants, one replacement for
each operator, and numbers plus and minus 1.

- Modules: {modules}, except types, decorators and the arguments of `zip`.
- Sample: {plan.share:.0%} of the {len(plan.sites()):,} places, drawn at random by seed {plan.seed}.
  {drawn:,} of them give another program that is valid Python; {len(results):,} of these were tried.
- Each mutant meets quick tests that run its line, then others that run its module, for some
  seconds. {new:,} that survived these are killed by tests that take longer or were written for
  them.

The commands at the head of `benchmarks/mutants.py` continue or repeat the run. A larger `share` in
`benchmarks/mutants.toml` keeps the sample and adds to it."""


def _count(results: Sequence[Result]) -> str:
    folders = sorted({_folder(result) for result in results})
    rows = [
        _make_row(folder, [result for result in results if _folder(result) == folder])
        for folder in folders
    ]
    head = ("modules", "mutants", "killed", "survive", "of these explained", "killed, %")
    return speed.markdown(head, [*rows, _make_row("**all**", results)])


def _make_row(name: str, results: Sequence[Result]) -> tuple[str, ...]:
    left = [result for result in results if result["outcome"] != "killed"]
    killed = len(results) - len(left)
    explained = sum(_explain(result) is not None for result in left)
    counts = (len(results), killed, len(left), explained)
    return name, *(f"{count:,}" for count in counts), f"{100 * killed / max(len(results), 1):.1f}"


def _list_survivors(results: Sequence[Result]) -> str:
    rows = [
        (
            f"`{_module(result)}`",
            _quote(result["before"]),
            _quote(result["after"]),
            _explain(result) or "not explained",
        )
        for result in results
        if result["outcome"] != "killed"
    ]
    return speed.markdown(("module", "code", "mutant", "why no test fails"), sorted(rows))


def _explain(result: Result) -> str | None:
    """Return the reason of the first entry with the module, the code and the mutant, if any."""
    for entry in _read_reasons():
        if (
            entry["module"] == _module(result)
            and entry["code"] in str(result["before"])
            and entry.get("mutant", "") in str(result["after"])
        ):
            return entry["why"]
    return None


@cache
def _read_reasons() -> list[Mapping[str, str]]:
    return list(tomllib.loads(EXPLAINED.read_text("utf-8")).get("survivor", []))


def _module(result: Result) -> str:
    return str(Path(str(result["file"])).relative_to(PACKAGE).with_suffix(""))


def _folder(result: Result) -> str:
    return _module(result).split("/")[0]


def _quote(code: object) -> str:
    return f"`{code}`".replace("|", "\\|")
