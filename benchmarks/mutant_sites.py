"""The mutants of modules: cosmic-ray's, without those that no test of numbers can notice."""

from __future__ import annotations

import ast
import random
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

PACKAGE = Path("polars_wroc")
Position = tuple[int, int]


@dataclass(frozen=True)
class Plan:
    """What is mutated, as `mutants.toml` says."""

    seed: int
    sample: int
    folders: list[str]
    formulas: list[str]
    operators: list[str]

    def modules(self) -> tuple[list[Path], list[Path]]:
        """Modules with the formulas, and the others."""
        formulas = sorted(path for name in self.formulas for path in PACKAGE.glob(f"{name}.py"))
        every = sorted(path for folder in self.folders for path in (PACKAGE / folder).glob("*.py"))
        return formulas, [path for path in every if path not in formulas]

    def sites(self, paths: Iterable[Path]) -> Iterator[_Site]:
        """All places of modules at which something can be changed."""
        return (site for path in paths for site in _sites_of(path, self.operators))

    def of_formulas(self) -> Iterator[Mutant]:
        """All mutants of the formulas."""
        return filter(None, map(_mutant, self.sites(self.modules()[0])))

    def of_others(self) -> Iterator[Mutant]:
        """Return a sample of the mutants of the other modules."""
        sites = list(self.sites(self.modules()[1]))
        random.Random(self.seed).shuffle(sites)  # noqa: S311
        return islice(filter(None, map(_mutant, sites)), self.sample)


class Mutant(NamedTuple):
    """One change: the ``place``-th at which an operator applies in a statement of a module.

    The statement, a function or class as a rule, takes the lines from ``first`` to ``last``.
    """

    file: str
    first: int
    last: int
    operator: str
    place: int
    line: int
    column: int
    function: str
    before: str
    after: str

    def text(self) -> str:
        """Text of the mutated module."""
        lines = Path(self.file).read_text("utf-8").splitlines(keepends=True)
        inside = slice(self.first - 1, self.last)
        lines[inside] = [_mutated("".join(lines[inside]), self.operator, self.place)]
        return "".join(lines)


def key(mutant: Mapping[str, object]) -> tuple[object, ...]:
    """What makes a mutant the same when lines have moved."""
    return tuple(mutant[name] for name in ("file", "function", "column", "before", "after"))


def plan() -> Plan:
    """Read the plan."""
    return Plan(**tomllib.loads(Path(__file__).with_name("mutants.toml").read_text("utf-8")))


def mutants_of(path: Path, operators: list[str]) -> Iterator[Mutant]:
    """Mutants of one module."""
    return filter(None, map(_mutant, _sites_of(path, operators)))


class _Site(NamedTuple):
    """A place where an operator applies; ``line`` is one of the statement with the text ``own``."""

    file: str
    first: int
    last: int
    operator: str
    place: int
    line: int
    column: int
    function: str
    own: str


def _sites_of(path: Path, operators: list[str]) -> Iterator[_Site]:
    """Sites of a module, one statement at a time, since each mutant is read from its text anew."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    unwatched, functions = _unwatched(tree), _functions(tree)
    for statement in tree.body:
        decorators = getattr(statement, "decorator_list", ())
        first = min(node.lineno for node in (statement, *decorators))
        last = statement.end_lineno or first
        own = "".join(lines[first - 1 : last])
        nodes = list(ast_nodes(get_ast(own)))
        for name in operators:
            operator = plugins.get_operator(f"core/{name}")()
            starts = (start for node in nodes for start, _ in operator.mutation_positions(node))
            for place, (line, column) in enumerate(starts):
                at = (line + first - 1, column)
                if lines[at[0] - 1][column:].startswith(("*,", "/,")):
                    continue  # of a signature
                around = max((f for f in functions if f[0] <= at[0] <= f[1]), default=(0, 0, ""))
                if not any(begin <= at < end for begin, end in unwatched):
                    yield _Site(str(path), first, last, name, place, *at, around[2], own)


def _mutant(site: _Site) -> Mutant | None:
    """Return the mutant, unless it is no Python or says the same as the module."""
    text = _mutated(site.own, site.operator, site.place)
    if _said(text) in (_said(site.own), ""):
        return None
    inside = site.line - site.first
    before, after = (some.splitlines()[inside].strip() for some in (site.own, text))
    return Mutant(*site[:-1], before, after)


def _mutated(source: str, operator: str, place: int) -> str:
    text = mutate_code(source, plugins.get_operator(f"core/{operator}")(), place)
    assert text is not None
    return str(text)


def _said(text: str) -> str:
    """What a module says, whatever its layout; nothing, as an empty one, if it is no Python."""
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return ""


def _functions(tree: ast.Module) -> list[tuple[int, int, str]]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = (node for node in ast.walk(tree) if isinstance(node, kinds))
    return [(node.lineno, node.end_lineno or 0, node.name) for node in found]


def _unwatched(tree: ast.Module) -> list[tuple[Position, Position]]:
    """Where changes are not about numbers: types, decorators, guards of `zip`."""
    nodes: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
            nodes.append(node.annotation)
        if isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
            nodes += [node.value] if node.value else []
        if isinstance(node, ast.FunctionDef):
            nodes += [*node.decorator_list, *([node.returns] if node.returns else [])]
        if isinstance(node, ast.ClassDef):
            nodes += node.decorator_list
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "zip":
            nodes += [keyword.value for keyword in node.keywords]
    return [_extent(node) for node in nodes]


def _extent(node: ast.AST) -> tuple[Position, Position]:
    assert isinstance(node, ast.expr)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
