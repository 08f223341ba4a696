"""Charts of pairs of groups, or of two crossed attributes, as tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.calls import check_call
from polars_wroc.charts.estimates import find_metric, read_estimates
from polars_wroc.charts.groups import (
    assign_groups,
    check_size,
    cross_panels,
    mean_ranks,
    name_column,
    read_table,
    sort_names,
)
from polars_wroc.charts.look import (
    BETTER_COLOR,
    INK,
    LETTER,
    LINE,
    PAPER,
    SMALL_SIZE,
    SOFT,
    TEXT_SIZE,
    WORSE_COLOR,
    in_default_theme,
    make_axis,
    without_checks,
)
from polars_wroc.charts.options import ChartOptions, Options, Show, plain_name, read_options
from polars_wroc.charts.plot import Plot, ends_of, number_tips, tip_title
from polars_wroc.charts.wording import format_numbers, join_sentences
from polars_wroc.documents.numbers import PLAIN, SHARE, NumberForm, write_number
from polars_wroc.groups.categories import CROSSED
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL
from polars_wroc.inputs.reasons import FEW

_MAKERS = "`cross_auc` or `group_gaps`"
_PREFIXES = ("positive_", "negative_")
_TILE, _SMALL_TILE, _LEAST_TILE = (92, 48), (46, 30), (42, 17)
# The most tiles that also show numbers of rows.
_ROOM_FOR_ROWS = (60, 40)
# From this many groups on a side tiles are small, and from this many numbers pale.
_MANY, _FEW_ROWS = 10, 30
_SEPARATOR = ", "
# The text of a tile without a number.
_NO_NUMBER = "\N{EN DASH}"
_ARROWS = "\N{BLACK DOWN-POINTING TRIANGLE}\N{BLACK UP-POINTING TRIANGLE}"
# The colours of findings by meaning, and the strength of tiles.
_NO_TONE = "none"
_TONES: dict[str, Any] = {
    "worse": WORSE_COLOR,
    "better": BETTER_COLOR,
    "either": SOFT,
    _NO_TONE: LINE,
}
_PALE, _STRONG = 0.15, 0.4
# The least difference that has a full colour.
_LEAST_SHADE = 0.05
# Formats of tiles, which have room for few digits.
_SHORT_FORMS = {SHARE: NumberForm(".0f", 100, "%"), PLAIN: NumberForm(".2f")}


@check_call
@without_checks
def matrix_chart(
    table: pl.DataFrame | pl.LazyFrame,
    *,
    metric: str | None = None,
    show: Show = "value",
    **options: Unpack[ChartOptions],
) -> alt.LayerChart | alt.FacetChart:
    """Draw a tile for each combination of two attributes, or for the AUC of each pair of groups.

    Parameters
    ----------
    table
        A comparison table with two crossed attributes, for example from
        ``group_gaps(attributes=["a", "b"], intersections=True)``; or the table of `cross_auc`. A
        LazyFrame is collected.
    metric, show
        The number in the tile of a combination: see `gap_chart`. By default the value.
    **options
        See `ChartOptions`, without ``color``, ``highlight`` and ``colors``. Several models have a
        panel each. Rows and columns are sorted by their mean.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        A tile for each combination, with its estimate and its number of rows. If it differs by more
        than chance, according to the verdict of the table, it has an arrow and a color: orange if
        it is worse, blue if it is better, and grey if the table says neither. Estimates from fewer
        than 30 rows, or from too few for a test, are pale. For `cross_auc`, the rows of the matrix
        are the groups of the positives and its columns the groups of the negatives; tiles are
        orange below the mean AUC within groups, and blue above it. At most 5,000 tiles.

    Raises
    ------
    TypeError, ValueError
        For a table of another function or without two crossed attributes, or an argument that does
        not fit the table.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> type(wroc.matrix_chart(wroc.cross_auc(df, "y", "s", by="g"))).__name__
    'LayerChart'
    """
    chosen = read_options(options, without=("color", "highlight", "colors"))
    frame, _ = read_table("table", table, (), _MAKERS)
    is_compared = all(name in frame.columns for name in AUDIT_KEYS)
    matrix = _read_combinations(frame, metric, show) if is_compared else _read_pairs(frame)
    check_size("table", matrix.rows)
    keys = [MODEL] if MODEL in matrix.rows.columns else []
    rows, keys, chosen = cross_panels(matrix.rows, keys, chosen)
    rows, groups = assign_groups(rows, keys, chosen)
    names = [_sort_side(rows, role, chosen) for role in ("down", "across")]
    tile = _TILE if max(map(len, names)) <= _MANY else _SMALL_TILE
    down, across = map(len, names)
    size = tile[0] * across, tile[1] * down
    plot = Plot(rows, groups, chosen, size=size, panel_size=size, columns=1)
    chosen.check_room(width=_LEAST_TILE[0] * across, height=_LEAST_TILE[1] * down)
    _draw(plot, rows, matrix, names)
    chart = plot.finish(matrix.title, matrix.key, margin=120)
    # Each panel has the names of its columns.
    return chart.resolve_axis(x="independent") if plot.has_panels else chart


@dataclass(frozen=True)
class _Matrix:
    """The tiles of a chart, its sides, and the texts above.

    ``rows`` have the names ``down`` and ``across``, ``rank``, the text ``number``, and ``n``,
    ``note``, ``is_small`` and ``tone`` or ``shade``.
    """

    rows: pl.DataFrame
    down: str
    across: str
    title: str
    key: str


def _read_combinations(frame: pl.DataFrame, metric: str | None, show: Show) -> _Matrix:
    """Return the matrix of comparisons of two crossed attributes."""
    is_crossed = pl.col("attribute").str.split(CROSSED).list.len() == 2  # noqa: PLR2004
    crossed = frame.filter(is_crossed)
    attributes = crossed["attribute"].unique(maintain_order=True).to_list()
    if len(attributes) != 1:
        rule = "have two crossed attributes, as with `intersections=True`"
        checks.reject("table", rule, f"{attributes or 'none'}: make it with `group_gaps`")
    first, second = attributes[0].split(CROSSED)
    # Names may contain commas, but each single value has its own row in the table.
    alone = frame.filter(attribute=first)["segment"].drop_nulls().unique().to_list()
    drawn = crossed.filter(metric=find_metric(crossed, metric).column)
    pairs = [_split(segment, alone) for segment in drawn["segment"]]
    sides = pl.DataFrame(pairs, {"down": pl.String, "across": pl.String}, orient="row")
    read = read_estimates(crossed, metric, show)
    form = _SHORT_FORMS.get(read.form, read.form)
    texts = [_NO_NUMBER if x is None else form.write(x) for x in read.rows["x"]]
    gap = pl.col("x") - pl.col("mark").fill_null(read.no_difference or 0.0)
    down, up = (pl.lit(f" {arrow}") for arrow in _ARROWS)
    arrow = pl.when(gap < 0).then(down).otherwise(up)
    is_found = pl.col("tone").is_not_null()
    is_few = pl.col("reason").str.starts_with(FEW).fill_null(value=False)
    rows = read.rows.select(
        *read.keys,
        "n",
        "note",
        *(pl.Series(side, name_column(sides, side).texts, pl.String) for side in sides.columns),
        rank="x",
        tone=pl.col("tone").fill_null(_NO_TONE),
        is_small=(pl.col("n") < _FEW_ROWS) | is_few,
        number=pl.Series(texts, dtype=pl.String)
        + pl.when(is_found).then(arrow).otherwise(pl.lit("")),
    )
    found = f"Arrows: differs from {read.than} by more than chance"
    pale = f"Pale: fewer than {_FEW_ROWS} rows, or too few to test"
    key = join_sentences(read.axis, found, pale if rows["is_small"].any() else "")
    return _Matrix(rows, first, second, read.write_title(), key)


def _split(segment: str | None, alone: list[str]) -> tuple[str, str]:
    """Return the names of both values of a combination."""
    text = segment or ""
    for name in sorted(alone, key=len, reverse=True):
        if text.startswith(f"{name}{_SEPARATOR}"):
            return name, text[len(name) + len(_SEPARATOR) :]
    first, _, second = text.partition(_SEPARATOR)
    return first, second


def _read_pairs(frame: pl.DataFrame) -> _Matrix:
    """Return the matrix of a table of `cross_auc`."""
    rows, keys = read_table("table", frame, ("xauc",), _MAKERS)
    sides = [[key for key in keys if key.startswith(prefix)] for prefix in _PREFIXES]
    if any(len(side) != 1 for side in sides):
        rule = "have the groups of pairs"
        checks.reject(
            "table", rule, f"{[*map(plain_name, keys)]}: make it with `cross_auc` of one column"
        )
    (down,), (across,) = sides
    named = rows.select(
        *(key for key in keys if key == MODEL and rows[MODEL].n_unique() > 1),
        pl.Series("down", name_column(rows, down).texts, pl.String),
        pl.Series("across", name_column(rows, across).texts, pl.String),
        rank="xauc",
        n=pl.lit(None, pl.Int64),
        note=pl.lit(None, pl.String),
        is_small=pl.lit(value=False),
        number=format_numbers("xauc", ".2f").fill_null(_NO_NUMBER),
    )
    own = named.filter(pl.col("down") == pl.col("across"))["rank"].mean()
    shade = pl.col("rank") - (own if isinstance(own, float) else 0.5)
    return _Matrix(
        named.with_columns(shade=shade),
        f"Positives: {plain_name(down).removeprefix(_PREFIXES[0])}",
        f"Negatives: {plain_name(across).removeprefix(_PREFIXES[1])}",
        _title_pairs(named),
        "AUC of the positives of a row against the negatives of a column. Orange: below the mean "
        "AUC within groups, blue: above it",
    )


def _title_pairs(rows: pl.DataFrame) -> str:
    """Return the title: which positives are ranked least well against which negatives."""
    known = rows.drop_nulls("rank").sort("rank", maintain_order=True)
    if known.is_empty():
        return "No AUC: no pair of groups has both classes"
    down, across, least = known.select("down", "across", "rank").row(0)
    pair = f"positives of {down} against negatives of {across}"
    return f"Lowest AUC, {write_number(least, '.2f')}: {pair}"


def _sort_side(rows: pl.DataFrame, role: str, options: Options) -> list[str]:
    """Return the names of one side in the caller's order."""
    ranks = mean_ranks(rows, role)
    return sort_names(rows[role].unique(maintain_order=True), options, ranks)


def _draw(plot: Plot, rows: pl.DataFrame, matrix: _Matrix, names: list[list[str]]) -> None:
    """Draw tiles with their numbers."""
    places = [{name: place for place, name in enumerate(side)} for side in names]
    placed = rows.drop("rank").with_columns(
        down_at=pl.col("down").replace_strict(places[0]),
        across_at=pl.col("across").replace_strict(places[1]),
    )
    base = plot.add_rows("tile", placed)
    width, height = plot.width / len(names[1]), plot.height / len(names[0])
    is_large = width >= _ROOM_FOR_ROWS[0] and height >= _ROOM_FOR_ROWS[1]
    x, y = _make_channels(matrix, names[1], width)
    tips = [
        *plot.group_tips(),
        alt.Tooltip("down:N", title=tip_title(matrix.down)),
        alt.Tooltip("across:N", title=tip_title(matrix.across)),
        alt.Tooltip("number:N"),
        alt.Tooltip("note:N", title="verdict"),
        *number_tips({"n": "rows"}),
    ]
    strength = alt.OpacityValue(_STRONG, condition={"test": "datum.is_small", "value": _PALE})
    ink = alt.ColorValue(INK, condition={"test": "datum.is_small", "value": SOFT})
    has_notes = is_large and rows["n"].count() > 0
    size = TEXT_SIZE + 1 if is_large else SMALL_SIZE
    tiles = base.mark_rect(stroke=PAPER, strokeWidth=3)
    numbers = base.mark_text(dy=-6 * has_notes, fontSize=size, fontWeight=600, aria=False)
    plot.layers += [
        tiles.encode(x, y, _make_color(rows), strength, tooltip=tips),
        numbers.encode(x, y, alt.Text("number:N"), ink),
    ]
    if has_notes:
        counts = base.transform_calculate(count="'n = ' + format(datum.n, ',')")
        notes = counts.mark_text(dy=12, fontSize=SMALL_SIZE, aria=False)
        plot.layers.append(notes.encode(x, y, alt.Text("count:N"), ink))


def _make_channels(matrix: _Matrix, across: list[str], width: float) -> tuple[alt.X, alt.Y]:
    """Return the channels of both sides; long names of columns are rotated."""
    look = {"grid": False, "labelLimit": 220}
    look |= in_default_theme(labelFontSize=TEXT_SIZE, labelColor=INK)
    angle = 0 if max(map(len, across)) * LETTER < width else -40
    top = make_axis(orient="top", labelAngle=angle, titleAnchor="start", titleAlign="left", **look)
    at_corner = {"titleAngle": 0, "titleAlign": "right", "titleAnchor": "end", "titleX": -10}
    left = make_axis(titleY=-8, titleBaseline="bottom", **at_corner, **look)
    return (
        alt.X("across:N", title=matrix.across, sort=_sort_by("across_at"), axis=top),
        alt.Y("down:N", title=matrix.down, sort=_sort_by("down_at"), axis=left),
    )


def _sort_by(place: str) -> alt.EncodingSortField:
    """Return a sort by place: Vega-Lite makes expressions of listed names, which may break."""
    return alt.EncodingSortField(place, op="min")


def _make_color(rows: pl.DataFrame) -> alt.Color:
    """Return the channel of the colours of tiles: of findings, or of differences of numbers."""
    if "shade" in rows.columns:
        _, most = ends_of(rows.select(pl.col("shade").abs()), "shade")
        ends = [-max(most, _LEAST_SHADE), 0, max(most, _LEAST_SHADE)]
        scale = alt.Scale(domain=ends, range=[WORSE_COLOR, LINE, BETTER_COLOR], interpolate="rgb")
        return alt.Color("shade:Q", legend=None, scale=scale)
    scale = alt.Scale(domain=[*_TONES], range=[*_TONES.values()])
    return alt.Color("tone:N", legend=None, scale=scale)
