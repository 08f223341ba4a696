"""Quoting of cells that a spreadsheet would run as formulas."""

from __future__ import annotations

import polars as pl
from polars import selectors

# The first characters of formulas, as listed by OWASP; numbers are no formulas.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"  # noqa: RUF001  (of full width)
_NUMBER = r"^[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$"
_QUOTE = "'"


def not_run(table: pl.DataFrame) -> pl.DataFrame:
    """Put a quote before texts and column names that a spreadsheet would run."""
    texts = selectors.string() | selectors.categorical() | selectors.enum()
    shown = table.with_columns(_quoted(texts.cast(pl.String)))
    return shown.rename(_headers(table.columns))


def _headers(names: list[str]) -> dict[str, str]:
    """Quote the names of columns, and keep them unique."""
    quoted = pl.DataFrame({"name": names}, {"name": pl.String}).select(_quoted(pl.col("name")))
    headers: dict[str, str] = {}
    for name, header in zip(names, quoted["name"], strict=True):
        taken = {*headers.values(), *names} - {name}
        headers[name] = header
        while headers[name] in taken:
            headers[name] = _QUOTE + headers[name]
    return headers


def _quoted(text: pl.Expr) -> pl.Expr:
    runs = text.str.contains(_FORMULA) & ~text.str.contains(_NUMBER)
    return pl.when(runs).then(_QUOTE + text).otherwise(text).name.keep()
