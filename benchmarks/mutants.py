"""Change the formulas, one place at a time, and see whether a test fails.

    TRACED=build/traced PYTHONPATH=benchmarks pytest -p traced_tests tests/stats tests/metrics ...
    python benchmarks/mutants.py run
    python benchmarks/mutants.py again --files polars_wroc/stats/means.py --tests tests/stats
    python benchmarks/mutants.py report --output benchmarks/mutants.md

`run` tries mutants that have no result yet, so a run that was stopped goes on: first with tests
that run the line and little else, then with others that run the module. `again` tries survivors
with more tests. `mutants.toml` says what is mutated, `mutants_explained.toml` why some survive.
No file of the package is changed, but the code must stay as it is during a run.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import mutant_report
from mutant_sites import Mutant, identify, read_plan
from mutant_tests import Traced, read_traced

Result = dict[str, object]

# Seconds until a worker that gives no answer is taken to hang.
PATIENCE = 240
# After so many mutants the unchanged module meets the same tests, which must pass.
CONTROL = 100


class Worker:
    """A process that runs tests; it is started again after it hangs, and from time to time."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def run(self, mutant: Mutant, tests: Sequence[str], *, unchanged: bool = False) -> Result:
        """Run tests of a mutated module, or of the module as it is."""
        if self.process is None:
            self.process = _start()
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        module = mutant.file.removesuffix(".py").replace("/", ".")
        text = None if unchanged else mutant.text()
        process.stdin.write(json.dumps({"module": module, "text": text, "tests": tests}) + "\n")
        process.stdin.flush()
        answered, _, _ = select.select([process.stdout], [], [], PATIENCE)
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
    """Try the mutants that have no result yet, and write down what happens."""
    done = read_results(results)
    waiting = [mutant for mutant in mutants if identify(mutant._asdict()) not in done]
    worker = Worker()
    for tried, mutant in enumerate(waiting, start=1):
        result = try_mutant(worker, mutant, tests)
        if tried % CONTROL == 0:
            check_unchanged(worker, mutant, tests)
            worker.stop()
        write_result(results, mutant, result)
    worker.stop()


def try_mutant(worker: Worker, mutant: Mutant, tests: Traced) -> Result:
    """Run the nearest tests, then others; the first that fails kills the mutant."""
    passed = 0
    for chosen in filter(None, tests.choose(mutant)):
        answer = worker.run(mutant, chosen)
        if answer["failed"]:
            return {"outcome": "killed", "by": answer["failed"]}
        if answer["code"] != 0:
            return {"outcome": "error", "by": f"tests ended with {answer['code']}"}
        passed += int(str(answer["passed"]))
    return {"outcome": "survived", "by": f"{passed} tests"}


def check_unchanged(worker: Worker, mutant: Mutant, tests: Traced) -> None:
    """Fail if the tests fail without the mutant: then they may have killed none before either."""
    near, _ = tests.choose(mutant)
    answer = worker.run(mutant, near, unchanged=True)
    if answer["code"] != 0:
        msg = f"without the mutant {mutant}: {answer}"
        raise RuntimeError(msg)


def try_again(mutants: Iterable[Mutant], tests: Sequence[str], results: Path) -> None:
    """Run given tests of the mutants that survived, and write down which are killed now."""
    done = read_results(results)
    worker = Worker()
    for mutant in mutants:
        last = done.get(identify(mutant._asdict()))
        if last is None or last["outcome"] == "killed":
            continue
        failed = worker.run(mutant, tests)["failed"]
        print(mutant.file, mutant.line, mutant.after, "|", failed or "survived")
        if failed:
            write_result(results, mutant, {"outcome": "killed", "by": failed, "new": True})
    worker.stop()


def read_results(path: Path) -> dict[tuple[object, ...], Result]:
    """Return the last result of each mutant."""
    if not path.exists():
        return {}
    results = map(json.loads, path.read_text("utf-8").splitlines())
    return {identify(result): result for result in results}


def write_result(path: Path, mutant: Mutant, result: Result) -> None:
    """Add a result to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**mutant._asdict(), **result}) + "\n")


def main() -> None:
    """Run, try again, or report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("task", choices=["run", "again", "report"])
    parser.add_argument("--traced", type=Path, default=Path("build/traced"), help="traced tests")
    parser.add_argument("--results", type=Path, default=Path("build/mutants.jsonl"))
    parser.add_argument("--files", nargs="*", help="only mutants of these files")
    parser.add_argument("--tests", nargs="*", default=[], help="what `again` runs")
    parser.add_argument("--output", type=Path, help="where `report` writes")
    options = parser.parse_args()
    plan = read_plan()
    mutants = [
        mutant for mutant in plan.mutants() if not options.files or mutant.file in options.files
    ]
    if options.task == "run":
        try_mutants(mutants, read_traced(options.traced), options.results)
    elif options.task == "again":
        try_again(mutants, options.tests, options.results)
    else:
        done = read_results(options.results)
        found = [done.get(identify(mutant._asdict())) for mutant in mutants]
        results = [result for result in found if result is not None]
        mutant_report.publish(plan, results, len(mutants), options.output)


if __name__ == "__main__":
    main()
