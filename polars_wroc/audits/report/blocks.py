"""The blocks of the matrix on the page: those of single attributes, then of crossed ones."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_wroc.audits.matrix import Matrix, Row, summed_up
from polars_wroc.audits.phrases import NOT_HERE, many
from polars_wroc.audits.segment_keys import segment_keys
from polars_wroc.inputs.names import AUDIT_KEYS, MODEL, OVERALL

# Most rows in the open, and most rows of a block.
_OPEN, _MOST = 20, 60


@dataclass(frozen=True)
class Block:
    """Rows of the matrix, those that are folded, and sentences about those and others."""

    heading: str
    rows: list[Row]
    folded: list[Row]
    summary: str
    left_out: str


def blocks_of(matrix: Matrix) -> list[Block]:
    """Fold all but the first rows."""
    named = (("Segments", matrix.single), ("Crossed segments", matrix.crossed))
    return [_block(heading, rows) for heading, rows in named if rows]


def _block(heading: str, rows: list[Row]) -> Block:
    more = rows[_OPEN:]
    left_out = len(rows) - _MOST
    return Block(
        heading,
        rows[:_OPEN],
        rows[_OPEN:_MOST],
        summed_up(more) if more else "",
        f"{many(left_out, 'more segment')} with less serious findings: {NOT_HERE}."
        if left_out > 0
        else "",
    )


def shown_in(blocks: list[Block], findings: pl.DataFrame) -> pl.DataFrame:
    """Name the segments that have a row, and all rows together."""
    keys = segment_keys(findings)
    rows = [row for block in blocks for row in (*block.rows, *block.folded)]
    values = {
        AUDIT_KEYS[0]: [row.attribute for row in rows],
        AUDIT_KEYS[1]: [row.segment for row in rows],
        MODEL: [row.model for row in rows],
    }
    named = pl.DataFrame(values, schema=dict.fromkeys(values, pl.String)).select(keys)
    return pl.concat([findings.filter(attribute=OVERALL).select(keys).unique(), named])
