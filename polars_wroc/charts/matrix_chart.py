"""Charts of pairs of groups, or of two attributes that are crossed, as tiles."""

from __future__ import annotations

from typing import Any, Unpack, get_args

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.charts.groups import (
    assign_groups,
    check_size,
    choose_panels,
    name_column,
    read_table,
    sort_names,
)
from polars_wroc.charts.look import (
    BETTER,
    INK,
    LINE,
    PAPER,
    SMALL_SIZE,
    SOFT,
    TEXT_SIZE,
    WORSE,
    is_default_theme,
    make_axis,
    without_checks,
)
from polars_wroc.charts.options import ChartOptions, Options, Show, read_options
from polars_wroc.charts.plot import Plot, number_tips, tip_title
from polars_wroc.charts.wording import join_sentences, write_points
from polars_wroc.documents.numbers import write_number
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import COMPARABLE, IMPACT, IMPACT_RATIO, METRICS, is_finding
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL
from polars_wroc.inputs.reasons import FEW

_COMPARED = (*AUDIT_KEYS, "metric", "value", "reference_value", "gap", "ratio", "verdict")
_PAIR = ("positive_", "negative_")
_TILE, _SMALL_TILE = (92, 48), (46, 30)
# Groups of a side from which on tiles are small, and numbers from which on they are pale.
_MANY, _FEW_ROWS = 10, 30
_SEPARATOR = ", "
_ARROWS = {"lower": " ▼", "higher": " ▲"}


@without_checks
def matrix_chart(
    table: pl.DataFrame | pl.LazyFrame,
    *,
    metric: str = "auc",
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
        The number in the tile of a combination: see `gap_chart`.
    **options
        See `ChartOptions`, without ``color``, ``highlight`` and ``colors``. Several models have a
        panel each. Rows and columns are sorted by their mean.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        A tile for each combination, with its estimate and its number of rows. A tile is orange with
        an arrow down if the verdict finds it lower, blue with an arrow up if higher, and grey
        otherwise. Estimates from fewer than 30 rows, or from too few for a test, are pale. For
        `cross_auc`, the rows of the matrix are the groups of the positives and its columns the
        groups of the negatives; tiles are orange below the mean AUC within groups, and blue above
        it. At most 5,000 tiles.

    Raises
    ------
    TypeError, ValueError
        For a table of another function or without two crossed attributes, a column that is not
        ``model``, or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> type(wroc.matrix_chart(wroc.cross_auc(df, "y", "s", by="g"))).__name__
    'LayerChart'
    """
    chosen = read_options(options, without=("color", "highlight", "colors"))
    checks.option("show", show, get_args(Show))
    frame, keys = read_table("table", table, (), "`cross_auc` or `group_gaps`")
    if all(name in frame.columns for name in _COMPARED):
        rows, sides = _combination_rows(frame, metric, show)
        is_pairs = False
    else:
        rows, sides = _pair_rows(frame)
        is_pairs = True
    check_size("table", rows)
    keys = [MODEL] if MODEL in rows.columns and rows[MODEL].n_unique() > 1 else []
    if keys and chosen.facet is None:
        chosen = read_options({**options, "facet": MODEL})
    rows, groups = assign_groups(
        rows.drop(() if keys else MODEL, strict=False), keys, chosen, choose_panels
    )
    down, across = (_names_in_order(rows, role, chosen) for role in ("down", "across"))
    side = _TILE if max(len(down), len(across)) <= _MANY else _SMALL_TILE
    size = side[0] * len(across), side[1] * len(down)
    plot = Plot(groups, chosen, size=size, panel_size=size, columns=1)
    _draw(plot, rows, (down, across), sides, side)
    if is_pairs:
        key = "Orange: lower than the groups' own AUCs on average, blue: higher"
        return plot.finish(_title_of_pairs(rows), key, margin=120)
    colors = "In color: a verdict finds a difference"
    pale = (
        f"Pale: fewer than {_FEW_ROWS} rows, or too few to test" if rows["is_small"].any() else ""
    )
    what = _heading(metric, show)
    return plot.finish(_title(rows, metric), join_sentences(what, colors, pale), margin=120)


def _heading(metric: str, show: Show) -> str:
    name = METRICS[metric].heading if metric in METRICS else COMPARABLE[metric].heading
    if show == "gap":
        return f"{name}: difference in points"
    return (
        "Share with the favorable decision" if (metric, show) == (IMPACT_RATIO, "value") else name
    )


def _combination_rows(
    frame: pl.DataFrame, metric: str, show: Show
) -> tuple[pl.DataFrame, tuple[str, str]]:
    """Give the columns of comparisons their roles, and return the names of both attributes."""
    is_crossed = pl.col("attribute").str.split(CROSSED).list.len() == 2  # noqa: PLR2004
    crossed = frame.filter(is_crossed)
    attributes = crossed["attribute"].unique(maintain_order=True).to_list()
    if len(attributes) != 1:
        rule = "have two attributes that are crossed, as with `intersections=True`"
        checks.reject("table", rule, f"{attributes or 'none'}: make it with `group_gaps`")
    known = crossed["metric"].unique(maintain_order=True).to_list()
    checks.option("metric", metric, known)
    first, second = attributes[0].split(CROSSED)
    rows = crossed.filter(metric=metric)
    # A name may have commas, but a value alone has its own row in the table.
    alone = frame.filter(attribute=first)["segment"].drop_nulls().unique().to_list()
    pairs = [_split(segment, alone) for segment in rows["segment"]]
    sides = pl.DataFrame(pairs, {"down": pl.String, "across": pl.String}, orient="row")
    unit, form = _unit_of(metric, show)
    numbers = [write_number(None if v is None else unit * v, form) for v in rows[show]]
    tone = pl.when(is_finding() & (pl.col("gap").fill_null(pl.col("ratio") - 1) < 0))
    return (
        rows.select(
            MODEL,
            "verdict",
            "n",
            is_small=(pl.col("n") < _FEW_ROWS)
            | pl.col("reason").str.starts_with(FEW).fill_null(value=False),
            rank=show,
            tone=tone.then(pl.lit("lower"))
            .when(is_finding())
            .then(pl.lit("higher"))
            .otherwise(pl.lit("none")),
            gap=pl.col("gap"),
            down=pl.Series(name_column(sides, "down").texts, dtype=pl.String),
            across=pl.Series(name_column(sides, "across").texts, dtype=pl.String),
            number=pl.Series(numbers, dtype=pl.String),
        ),
        (first, second),
    )


def _split(segment: str | None, alone: list[str]) -> tuple[str, str]:
    """Split the name of a combination into the names of both values."""
    text = segment or ""
    for name in sorted(alone, key=len, reverse=True):
        if text.startswith(f"{name}{_SEPARATOR}"):
            return name, text[len(name) + len(_SEPARATOR) :]
    first, _, second = text.partition(_SEPARATOR)
    return first, second


def _unit_of(metric: str, show: Show) -> tuple[int, str]:
    """Return what a number is multiplied by, and its format."""
    if show == "gap":
        return 100, "+.0f" if metric != "auc" else "+.1f"
    return (1, ".2f") if show == "ratio" or metric == "auc" else (1, ".0%")


def _pair_rows(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, str]]:
    """Give the columns of `cross_auc` their roles."""
    expected = ("xauc",)
    rows, keys = read_table("table", frame, expected, "`cross_auc` or `group_gaps`")
    sides = [[key for key in keys if key.startswith(prefix)] for prefix in _PAIR]
    if any(len(side) != 1 for side in sides):
        rule = "have the groups of pairs"
        checks.reject("table", rule, f"{keys}: make it with `cross_auc` of one column")
    (down,), (across,) = sides
    texts = {
        name: name_column(rows, key).texts for name, key in (("down", down), ("across", across))
    }
    named = rows.with_columns(
        **{name: pl.Series(text, dtype=pl.String) for name, text in texts.items()}
    )
    own = named.filter(pl.col("down") == pl.col("across"))["xauc"].mean()
    return (
        named.select(
            *([MODEL] if MODEL in keys else []),
            "down",
            "across",
            verdict=pl.lit(None, pl.String),
            n=pl.lit(None, pl.Int64),
            is_small=pl.lit(value=False),
            rank="xauc",
            shade=pl.col("xauc") - (own if isinstance(own, float) else 0.5),
            number=pl.Series([write_number(v, ".2f") for v in rows["xauc"]], dtype=pl.String),
        ),
        (
            f"Positives: {down.removeprefix(_PAIR[0])}",
            f"Negatives: {across.removeprefix(_PAIR[1])}",
        ),
    )


def _names_in_order(rows: pl.DataFrame, role: str, options: Options) -> list[str]:
    """Return the names of one side in the order that the caller chose."""
    ranks = rows.group_by(role, maintain_order=True).agg(pl.col("rank").mean())
    return sort_names(ranks[role].to_list(), options, dict(ranks.iter_rows()))


def _draw(
    plot: Plot,
    rows: pl.DataFrame,
    names: tuple[list[str], list[str]],
    sides: tuple[str, str],
    tile: tuple[int, int],
) -> None:
    """Draw tiles with their numbers."""
    x, y = _channels(names, sides)
    arrow = (
        pl.col("tone").replace_strict(_ARROWS, default="") if "tone" in rows.columns else pl.lit("")
    )
    counted = pl.when(pl.col("n").is_not_null()).then(pl.format("n = {}", "n"))
    kept = [name for name in ("tone", "shade") if name in rows.columns]
    places = [{name: place for place, name in enumerate(side)} for side in names]
    drawn = rows.select(
        *("down", "across", "verdict", "n", "is_small", "panel", *kept),
        down_at=pl.col("down").replace_strict(places[0]),
        across_at=pl.col("across").replace_strict(places[1]),
        number=pl.col("number") + arrow,
        note=counted.fill_null(""),
    )
    base = plot.add_rows("tile", drawn)
    pale = alt.condition("datum.is_small", alt.value(0.5), alt.value(1))
    tips = [
        *plot.group_tips(),
        alt.Tooltip("down:N", title=tip_title(sides[0])),
        alt.Tooltip("across:N", title=tip_title(sides[1])),
        "number:N",
        "verdict:N",
        *number_tips({"n": "rows"}),
    ]
    is_large = tile == _TILE
    has_notes = is_large and rows["n"].count() > 0
    sizes: dict[str, Any] = {"fontSize": TEXT_SIZE + 1 if is_large else SMALL_SIZE}
    tiles = base.mark_rect(stroke=PAPER, strokeWidth=3)
    plot.layers += [
        tiles.encode(x, y, _tile_color(rows), opacity=alt.value(0.4), tooltip=tips),
        base.mark_text(dy=-6 * has_notes, fontWeight=600, aria=False, **sizes).encode(
            x, y, text="number:N", opacity=pale, color=alt.value(INK)
        ),
    ]
    if has_notes:
        notes = base.mark_text(dy=12, fontSize=SMALL_SIZE, aria=False)
        plot.layers.append(notes.encode(x, y, text="note:N", opacity=pale, color=alt.value(SOFT)))


def _channels(names: tuple[list[str], list[str]], sides: tuple[str, str]) -> tuple[alt.X, alt.Y]:
    look: dict[str, Any] = {"grid": False, "labelLimit": 220}
    if is_default_theme():
        look |= {"labelFontSize": TEXT_SIZE, "labelColor": INK}
    _, across = names
    angle = 0 if len(across) <= _MANY else -40
    top = make_axis(orient="top", labelAngle=angle, titleAnchor="start", titleAlign="left", **look)
    left = make_axis(
        titleAngle=0,
        titleAlign="right",
        titleAnchor="end",
        titleX=-10,
        titleY=-8,
        titleBaseline="bottom",
        **look,
    )
    return (
        alt.X("across:N", title=sides[1], sort=_by("across_at"), axis=top),
        alt.Y("down:N", title=sides[0], sort=_by("down_at"), axis=left),
    )


def _by(place: str) -> alt.EncodingSortField:
    """Sort by a place: Vega-Lite makes expressions of listed names, which may break."""
    return alt.EncodingSortField(place, op="min")


def _tile_color(rows: pl.DataFrame) -> alt.Color:
    """Return the channel of the colours of tiles: of verdicts, or of how far numbers are apart."""
    if "shade" in rows.columns:
        numbers = rows["shade"].abs().max()
        most = max(numbers, 0.05) if isinstance(numbers, float) else 0.05
        scale = alt.Scale(domain=[-most, 0, most], range=[WORSE, LINE, BETTER], interpolate="rgb")
        return alt.Color("shade:Q", legend=None, scale=scale)
    scale = alt.Scale(domain=["lower", "higher", "none"], range=[WORSE, BETTER, LINE])
    return alt.Color("tone:N", legend=None, scale=scale)


def _title(rows: pl.DataFrame, metric: str) -> str:
    """Say which combination is found to be lowest."""
    what = METRICS[metric].label if metric in METRICS else COMPARABLE[metric].label
    lower = rows.filter(tone="lower").sort("rank", maintain_order=True)
    if lower.is_empty():
        higher = rows.filter(tone="higher")
        found = f"{higher.height} of {rows.height} are higher" if higher.height else "none differs"
        return f"{what[0].upper()}{what[1:]} of the combinations: {found}"
    one = lower.row(0, named=True)
    name = f"{one['down']}, {one['across']}"
    if metric == IMPACT_RATIO:
        return f"{name}: {IMPACT.label} below four fifths, {one['number']}"
    return f"{name}: {what} {write_points(one['gap'])} below the reference"


def _title_of_pairs(rows: pl.DataFrame) -> str:
    """Say which positives are ranked least well against which negatives."""
    known = rows.drop_nulls("rank").sort("rank", maintain_order=True)
    if known.is_empty():
        return "No AUC: no pair of groups has both classes"
    down, across, least = known.select("down", "across", "rank").row(0)
    pair = f"positives of {down} against negatives of {across}"
    return f"Lowest AUC, {write_number(least, '.2f')}: {pair}"
