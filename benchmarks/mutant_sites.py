"""The mutants of modules: cosmic-ray's, without those that no test of numbers can notice."""

from __future__ import annotations

import ast
import random
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

PACKAGE = Path("polars_wroc")
Position = tuple[int, int]


class Site(NamedTuple):
    """A place where an operator applies, the ``place``-th in a statement of a module.

    The statement, usually a function or class, takes the lines from ``first`` to ``last`` and has
    the text ``statement``; the place is on the line ``before``.
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
    statement: str

    def draw(self, seed: int) -> float:
        """Return a random number between 0 and 1 that stays when code elsewhere changes."""
        place = (seed, self.file, self.function, self.operator, self.column, self.before)
        return random.Random(repr(place)).random()  # noqa: S311


class Mutant(NamedTuple):
    """One change in a module, of the line ``before`` to ``after``; see `Site`."""

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
        """Return the text of the mutated module."""
        lines = Path(self.file).read_text("utf-8").splitlines(keepends=True)
        inside = slice(self.first - 1, self.last)
        lines[inside] = [_mutate("".join(lines[inside]), self.operator, self.place)]
        return "".join(lines)


@dataclass(frozen=True)
class Plan:
    """What is mutated, as `mutants.toml` says."""

    seed: int
    share: float
    modules: list[str]
    operators: list[str]

    def sites(self) -> list[Site]:
        """Return all places of the modules where an operator applies."""
        paths = sorted(path for name in self.modules for path in PACKAGE.glob(f"{name}.py"))
        return [site for path in paths for site in _find_sites(path, self.operators)]

    def mutants(self) -> list[Mutant]:
        """Return the mutants of a random share of the places, in random order."""
        drawn = sorted((site.draw(self.seed), site) for site in self.sites())
        sample = [site for draw, site in drawn if draw < self.share]
        return [mutant for site in sample if (mutant := _make_mutant(site))]


def read_plan() -> Plan:
    """Read the plan."""
    return Plan(**tomllib.loads(Path(__file__).with_name("mutants.toml").read_text("utf-8")))


def identify(mutant: Mapping[str, object]) -> tuple[object, ...]:
    """Return what makes a mutant the same when lines have moved."""
    return tuple(mutant[name] for name in ("file", "function", "column", "before", "after"))


def _find_sites(path: Path, operators: list[str]) -> Iterator[Site]:
    """Find the places of a module, one statement at a time, since each mutant is parsed anew."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    unwatched, functions = _find_unwatched(tree), _find_functions(tree)
    for statement in tree.body:
        decorators = getattr(statement, "decorator_list", ())
        first = min(node.lineno for node in (statement, *decorators))
        last = statement.end_lineno or first
        text = "".join(lines[first - 1 : last])
        nodes = list(ast_nodes(get_ast(text)))
        for name in operators:
            operator = plugins.get_operator(f"core/{name}")()
            starts = (start for node in nodes for start, _ in operator.mutation_positions(node))
            for place, (row, column) in enumerate(starts):
                line = row + first - 1
                before = lines[line - 1]
                is_unwatched = any(begin <= (line, column) < end for begin, end in unwatched)
                # An asterisk or slash alone in a signature is no operator.
                if is_unwatched or before.startswith(("*,", "/,"), column):
                    continue
                around = max(
                    (each for each in functions if each[0] <= line <= each[1]), default=(0, 0, "")
                )
                position = (line, column, around[2], before.strip())
                yield Site(str(path), first, last, name, place, *position, text)


def _make_mutant(site: Site) -> Mutant | None:
    """Return the mutant, unless it is no Python or says the same as the module."""
    text = _mutate(site.statement, site.operator, site.place)
    try:
        if ast.dump(ast.parse(text)) == ast.dump(ast.parse(site.statement)):
            return None
    except SyntaxError:
        return None
    return Mutant(*site[:-1], text.splitlines()[site.line - site.first].strip())


def _mutate(source: str, operator: str, place: int) -> str:
    text = mutate_code(source, plugins.get_operator(f"core/{operator}")(), place)
    assert text is not None
    return str(text)


def _find_functions(tree: ast.Module) -> list[tuple[int, int, str]]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = (node for node in ast.walk(tree) if isinstance(node, kinds))
    return [(node.lineno, node.end_lineno or 0, node.name) for node in found]


def _find_unwatched(tree: ast.Module) -> list[tuple[Position, Position]]:
    """Find where changes are not about numbers: types, decorators, guards of `zip`."""
    nodes: list[ast.expr | None] = []
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=annotation):
                nodes.append(annotation)
            case ast.AnnAssign(annotation=ast.Name("TypeAlias"), value=value):
                nodes.append(value)
            case ast.AnnAssign(annotation=annotation):
                nodes.append(annotation)
            case ast.FunctionDef(decorator_list=decorators, returns=returns):
                nodes += [*decorators, returns]
            case ast.ClassDef(decorator_list=decorators):
                nodes += decorators
            case ast.Call(func=ast.Name("zip"), keywords=keywords):
                nodes += [keyword.value for keyword in keywords]
    return [_extent(node) for node in nodes if node is not None]


def _extent(node: ast.expr) -> tuple[Position, Position]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
