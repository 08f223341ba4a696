"""Change the formulas, one place at a time, and see whether a test fails.

    TRACED=build/traced PYTHONPATH=benchmarks pytest -p traced_tests tests/stats tests/metrics ...
    python benchmarks/mutants.py run --traced build/traced --results build/mutants.jsonl
    python benchmarks/mutants.py report --results build/mutants.jsonl --output benchmarks/mutants.md

Each mutant meets first the tests that run its line and little else, then the other tests that run
its module. What is mutated says `mutants.toml`, why some survive `mutants_explained.toml`. A run
that was stopped goes on where it was; no file of the package is changed.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mutant_sites import Mutant, Plan, key, mutants_of, plan
from mutant_tests import Traced, traced

# Seconds that the tests may take, and may have taken when they were traced.
NEAR, FAR = (120, 3.0), (240, 8.0)
# After so many mutants the unchanged module meets the same tests, which must pass.
CONTROL = 100


class Worker:
    """A process that runs tests; it is started again after it hangs, and from time to time."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def run(
        self, mutant: Mutant, text: str | None, tests: Sequence[str], limit: float
    ) -> dict[str, object]:
        """Run tests of a mutated module, or of the module as it is."""
        if self.process is None:
            self.process = _start()
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        module = mutant.file.removesuffix(".py").replace("/", ".")
        process.stdin.write(json.dumps({"module": module, "text": text, "tests": tests}) + "\n")
        process.stdin.flush()
        answered, _, _ = select.select([process.stdout], [], [], limit)
        answer = process.stdout.readline() if answered else ""
        if not answer:
            self.stop()
            return {"code": -1, "passed": 0, "failed": "crash" if answered else "time limit"}
        return dict(json.loads(answer))

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        self.process = None


def _start() -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name("mutant_worker.py"))]
    path = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))
    pipe = subprocess.PIPE
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)


def try_mutants(mutants: Iterable[Mutant], tests: Traced, results: Path) -> None:
    """Try the mutants of which there is no result yet, and write down what happens."""
    done = {key(result) for result in read(results)}
    worker = Worker()
    waiting = (mutant for mutant in mutants if key(mutant._asdict()) not in done)
    with results.open("a", encoding="utf-8") as file:
        for tried, mutant in enumerate(waiting):
            start = time.perf_counter()
            result = try_one(worker, mutant, tests)
            result["seconds"] = round(time.perf_counter() - start, 2)
            if tried % CONTROL == CONTROL - 1:
                check(worker, mutant, tests)
                worker.stop()
            file.write(json.dumps(mutant._asdict() | result) + "\n")
            file.flush()
    worker.stop()


def try_one(worker: Worker, mutant: Mutant, tests: Traced) -> dict[str, object]:
    """Run the nearest tests, then others; the first that fails kills the mutant."""
    near, far = tests.of(mutant, NEAR[1], FAR[1])
    ran = 0
    for chosen, limit in ((near, NEAR[0]), (far, FAR[0])):
        if not chosen:
            continue
        answer = worker.run(mutant, mutant.text(), chosen, limit)
        if answer["failed"]:
            return {"outcome": "killed", "by": answer["failed"]}
        if answer["code"] != 0:
            return {"outcome": "error", "by": f"tests ended with {answer['code']}"}
        ran += int(str(answer["passed"]))
    return {"outcome": "survived", "by": f"{ran} tests"}


def check(worker: Worker, mutant: Mutant, tests: Traced) -> None:
    """Fail if the tests fail without the mutant: then earlier ones may not have been killed."""
    near, _ = tests.of(mutant, NEAR[1], FAR[1])
    answer = worker.run(mutant, None, near, 4 * NEAR[0])
    if answer["code"] != 0:
        msg = f"without the mutant {mutant}: {answer}"
        raise RuntimeError(msg)


def try_again(mutants: Iterable[Mutant], tests: Sequence[str], results: Path) -> None:
    """Run given tests of the mutants that survived, and write down which are killed now."""
    left = {key(one) for one in latest(read(results)) if one["outcome"] != "killed"}
    worker = Worker()
    with results.open("a", encoding="utf-8") as file:
        for mutant in mutants:
            if key(mutant._asdict()) not in left:
                continue
            answer = worker.run(mutant, mutant.text(), tests, FAR[0])
            print(mutant.file, mutant.line, mutant.after, "|", answer["failed"] or "survived")
            if answer["failed"]:
                new = {"outcome": "killed", "by": answer["failed"], "new": True}
                file.write(json.dumps(mutant._asdict() | new) + "\n")
                file.flush()
    worker.stop()


def read(results: Path) -> list[dict[str, object]]:
    """Results of earlier runs, oldest first."""
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text("utf-8").splitlines()]


def latest(results: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """Return the last result of each mutant."""
    return list({key(result): result for result in results}.values())


def chosen(what: Plan, only: Sequence[str]) -> Iterator[Mutant]:
    """Mutants of the plan, or those of some of its parts or files."""
    for name in only or ("formulas", "others"):
        if name == "formulas":
            yield from what.of_formulas()
        elif name == "others":
            yield from what.of_others()
        else:
            yield from mutants_of(Path(name), what.operators)


def main() -> None:
    """Run, try again, or report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("task", choices=["count", "run", "again", "report"])
    parser.add_argument("--traced", type=Path, help="folder that `traced_tests` wrote")
    parser.add_argument("--results", type=Path, default=Path("build/mutants.jsonl"))
    parser.add_argument("--only", nargs="*", default=[], help="formulas, others, or files")
    parser.add_argument("--tests", nargs="*", default=[], help="what `again` runs")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    what = plan()
    mutants = chosen(what, options.only)
    if options.task == "count":
        print(Counter(mutant.file for mutant in mutants))
    elif options.task == "run":
        try_mutants(mutants, traced(options.traced), options.results)
    elif options.task == "again":
        try_again(mutants, options.tests, options.results)
    else:
        # Needs what other benchmarks need, and a run does not.
        import mutant_report  # noqa: PLC0415

        mutant_report.publish(what, latest(read(options.results)), options.output)


if __name__ == "__main__":
    main()
