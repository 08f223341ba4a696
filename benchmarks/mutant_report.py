"""The report of a run of mutants: how many were killed, and why the others survive."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import speed
from mutant_sites import PACKAGE, Plan, key, mutants_of

Result = Mapping[str, object]
EXPLAINED = Path(__file__).with_name("mutants_explained.toml")


def publish(plan: Plan, results: Sequence[Result], output: Path | None) -> None:
    """Print the report, or write it to a file."""
    formulas = {str(path) for path in plan.modules()[0]}
    results = list(_current(plan, results))
    of_formulas = [result for result in results if result["file"] in formulas]
    others = [result for result in results if result["file"] not in formulas]
    sections = [
        "# Mutation testing",
        speed.machine(),
        _introduction(plan, of_formulas, others),
        "## Results",
        _counts(of_formulas, others),
        "## Mutants that survive",
        _survivors(results),
    ]
    speed.publish(sections, output)


def _introduction(plan: Plan, of_formulas: Sequence[Result], others: Sequence[Result]) -> str:
    formulas = len({key(mutant._asdict()) for mutant in plan.of_formulas()})
    places = sum(1 for _ in plan.sites(plan.modules()[1]))
    added = sum(bool(result.get("new")) for result in (*of_formulas, *others))
    tried = {_folder(result) for result in (*of_formulas, *others)}
    missing = ", ".join(f"`{name}`" for name in plan.folders if name not in tried)
    left = [result for result in (*of_formulas, *others) if result["outcome"] != "killed"]
    open_cases = sum(_reason(result) is None for result in left)
    undecided = f"; {open_cases} are not explained yet" if open_cases else ""
    untouched = f" (so far none in {missing})" if missing else ""
    return f"""\
How good are the tests? A *mutant* is the package with one place changed: a sign, an operator, a
comparison, a number, a condition. If a test then fails, the mutant is *killed*. If none does, the
*survivor* is either equivalent, since the change makes no difference to any result, or the tests
have a gap. [cosmic-ray](https://cosmic-ray.readthedocs.io) makes the mutants, one replacement for
each operator, and numbers plus and minus 1.

- Formulas: {len(of_formulas):,} of the {formulas:,} mutants of these modules:
  {", ".join(f"`{name}`" for name in plan.formulas)}.
- Elsewhere: {len(others):,} mutants of the {places:,} places in the other modules of
  {", ".join(f"`{name}`" for name in plan.folders)}: samples of
  {plan.sample} by seed {plan.seed}, without those whose code has changed since. Some of these
  modules have formulas too.
- Not changed are types, decorators and the arguments of `zip`; a change that leaves the module the
  same, or no Python, does not count.
- Not run: the other places{untouched}, and replacements of an operator by more than one other.

Each mutant first meets quick tests that run its line, then more of its module, for some seconds.
Of those that survived this, {added:,} are killed by tests that were written for them, or that were
too long for the first round. The last table says why the others survive{undecided}.

To go on, follow the commands at the head of `benchmarks/mutants.py`: what has a result is not tried
again. `python benchmarks/mutants.py again --only FILE --tests TEST ...` runs given tests of the
survivors of a file."""


def _counts(*parts: Sequence[Result]) -> str:
    rows = []
    for name, results in zip(("formulas", "elsewhere"), parts, strict=True):
        folders = sorted({_folder(result) for result in results})
        rows += [_row(name, f, [r for r in results if _folder(r) == f]) for f in folders]
        rows.append(_row(name, "**all**", results))
    head = ("part", "folder", "mutants", "killed", "survive", "explained", "killed, %")
    return speed.markdown(head, rows)


def _row(part: str, folder: str, results: Sequence[Result]) -> tuple[str, ...]:
    outcomes = Counter(str(result["outcome"]) for result in results)
    left = [result for result in results if result["outcome"] != "killed"]
    explained = sum(_reason(result) is not None for result in left)
    share = 100 * outcomes["killed"] / max(len(results), 1)
    counts = (len(results), outcomes["killed"], len(left), explained)
    return part, folder, *(f"{count:,}" for count in counts), f"{share:.1f}"


def _survivors(results: Iterable[Result]) -> str:
    rows = [
        (
            f"`{_module(result)}`",
            f"`{_short(result, 'before')}`",
            f"`{_short(result, 'after')}`",
            _reason(result) or "not explained",
        )
        for result in results
        if result["outcome"] != "killed"
    ]
    return speed.markdown(("module", "code", "mutant", "why no test fails"), sorted(rows))


def _current(plan: Plan, results: Sequence[Result]) -> Iterator[Result]:
    """Results of mutants whose code is still there."""
    paths = {Path(str(result["file"])) for result in results}
    there = {
        key(mutant._asdict())
        for path in paths
        if path.exists()
        for mutant in mutants_of(path, plan.operators)
    }
    return (result for result in results if key(result) in there)


def _reason(result: Result) -> str | None:
    """Reason of the first entry with the module and the code, and the mutant if it says one."""
    for entry in _explained():
        if (
            entry["module"] == _module(result)
            and entry["code"] in str(result["before"])
            and entry.get("mutant", "") in str(result["after"])
        ):
            return entry["why"]
    return None


@cache
def _explained() -> list[Mapping[str, str]]:
    return list(tomllib.loads(EXPLAINED.read_text("utf-8"))["survivor"])


def _module(result: Result) -> str:
    return str(Path(str(result["file"])).relative_to(PACKAGE).with_suffix(""))


def _folder(result: Result) -> str:
    return _module(result).split("/")[0]


def _short(result: Result, side: str) -> str:
    return str(result[side]).replace("|", "\\|")
