"""The part of a generated page on the types of options."""

from __future__ import annotations

from public_surface import numbers, options

_ABOUT_TYPES = """\
Options are Literals, which `polars_wroc.typing` exports for annotating your own functions:

```pycon
>>> import polars as pl
>>> import polars_wroc as wroc
>>> from polars_wroc.typing import AucMethod
>>> def aucs(frame: pl.LazyFrame, method: AucMethod) -> pl.LazyFrame:
...     return frame.pipe(wroc.summary, "label", "score", method=method)
>>> frame = pl.LazyFrame({"label": [1, 0], "score": [0.9, 0.1]})
>>> aucs(frame, "delong").collect()["auc"].item()
1.0

```

It also has `IntoColumn` and `IntoColumns` (a column name or expression, or several), and `FrameT`:
a DataFrame gives a DataFrame, a LazyFrame a LazyFrame. Type checkers understand functions, so use
`frame.pipe(wroc.summary, ...)` if types matter; they know nothing of methods like
`frame.wroc.summary(...)`, which Polars adds when the program runs. `Counts` and `NewYorkSummary`
are the types that `from_counts` and `new_york_summary` return. If a type takes other values too,
for example numbers, the table lists only its words."""

_ABOUT_NUMBERS = """\
Each call checks numbers against the bounds of their types. Type checkers see `float` or `int`:"""


def types_of_options() -> str:
    """Describe the types of options, with their values, and of numbers, with their bounds."""
    rows = (
        f"| `{name}` | {', '.join(map(_value, values))} |" for name, values in options().items()
    )
    words = "\n".join(["| type | values |", "|---|---|", *rows])
    bounds = (f"| `{name}` | {text} |" for name, text in numbers().items())
    table = "\n".join(["| type | numbers |", "|---|---|", *bounds])
    return f"## Types\n\n{_ABOUT_TYPES}\n\n{words}\n\n{_ABOUT_NUMBERS}\n\n{table}\n"


def _value(value: str) -> str:
    return f"`{value}`".replace("'", '"')
