"""`Text`: the title and note of an audit, and the words of its sentences."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from polars_wroc.inputs import arguments


@dataclass(frozen=True, kw_only=True)
class Text:
    """Title and note of an audit, and the words that its sentences use.

    Parameters
    ----------
    title
        What reports are called.
    note
        What readers of a report should know, such as where the rows come from.
    positive, negative
        What people of both classes are, as a participle or an adjective: ``"repaid"``,
        ``"in default"``. By default `positive` is the name of the label where that is a participle,
        such as ``approved``, and otherwise ``"positive"``, or ``"with status = bad"`` for
        ``pos_label="bad"``; `negative` is its contrary.
    selected, rejected
        What people are by a decision: ``"hired"``, ``"denied"``. By default ``"selected"``, and
        ``"not"`` before it.

    Raises
    ------
    TypeError, ValueError
        For anything but text that is not empty.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "sex": list("ffmm")})
    >>> text = wroc.Text(title="Defaults of 2026", positive="in default", selected="denied")
    >>> options = {"threshold": 0.5, "favorable": "rejected", "text": text}
    >>> audit = wroc.audit(df, "y", "s", attributes="sex", **options)
    >>> audit.reading
    'Being denied (a score of 0.5 or more) counts as bad; impact ratios are of those not denied.'
    """

    title: str | None = None
    note: str | None = None
    positive: str | None = None
    negative: str | None = None
    selected: str | None = None
    rejected: str | None = None

    def __post_init__(self) -> None:
        """Check that each is text."""
        for name, value in self.as_dict().items():
            if value is None:
                continue
            if not isinstance(value, str):
                arguments.reject_type(name, "be a text", value)
            if not value.strip():
                msg = f"`{name}` must be a text that is not empty; found {value!r}"
                raise ValueError(msg)
            arguments.check_text(name, value)

    def as_dict(self) -> dict[str, Any]:
        """Return the texts by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
