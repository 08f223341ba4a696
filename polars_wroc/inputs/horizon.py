"""Outcomes at a horizon: labels and weights from times that may be censored."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.bounds import Positive, WeightLimit
from polars_wroc.calls import check_call
from polars_wroc.checks import show_value
from polars_wroc.inputs import columns
from polars_wroc.inputs.columns import IntoColumn, Typed, exact, valid_weights
from polars_wroc.inputs.expressions import as_column, typed_column
from polars_wroc.inputs.frames import named_keys
from polars_wroc.inputs.rows import IntoColumns, polars_frame
from polars_wroc.queries import FrameT, like_input, require_at_collect

Competing: TypeAlias = Literal["negative", "exclude"]

_LABEL, _WEIGHT, _STATUS = _COLUMNS = ("horizon_label", "horizon_weight", "horizon_status")
_STATUSES = ("event", "competing", "no event", "censored")
_EVENT, _COMPETING, _NO_EVENT, _CENSORED = _STATUSES
_FEW_ROWS, _LARGE_FACTOR = 10, 20


@check_call
def at_horizon(
    frame: FrameT,
    time: IntoColumn,
    event: IntoColumn,
    horizon: Positive,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    event_code: object = 1,
    censored_code: object = 0,
    competing_code: object = None,
    competing: Competing = "negative",
    most: WeightLimit | None = None,
) -> FrameT:
    """Add labels at a time horizon, and weights that make up for censored rows.

    Pass the added label and weight to the other functions. Rows that were not observed long enough
    have no label; others carry their weight. This assumes that within a group censoring does not
    depend on the score or the risk.

    The added columns are:

    - ``horizon_label`` (Int8): 1 with the event by the horizon, 0 without it, null if unknown;
    - ``horizon_weight`` (Float64): the weight of a row with a label, else null;
    - ``horizon_status`` (String): ``"event"``, ``"competing"`` or ``"censored"`` by the horizon, or
      ``"no event"`` if observed beyond it; null where the time, event or weight is.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame with all rows: filtering first would change the weights.
    time
        Column of times from the score to the event or the end of observation: finite, zero or more.
    event
        Column that says how the time ended: with an event, a competing event, or censoring.
    horizon
        A time above 0, in the unit of ``time``.
    weight
        Column of weights: finite, zero or more.
    by
        Groups in which the censoring is estimated separately. Pass them if censoring or risks
        differ between groups that you will compare.
    event_code, censored_code, competing_code
        The value of ``event`` for each; a Boolean column has 1 and 0. Any other value is an error.
    competing
        ``"negative"``: rows with a competing event by the horizon get the label 0, since the event
        can no longer happen to them. ``"exclude"``: they get no label; then read only the AUC and
        true and false positive rates.
    most
        Largest factor that a weight may be multiplied by, 1 or more. Cutting weights biases rates.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        All rows in their order, with the three columns. All labels of a group are null if its last
        rows are censored by the horizon: the share of events is then not identified.

    Warns
    -----
    UserWarning
        For a DataFrame with a group in which no label is known, fewer than 10 rows are observed
        beyond the horizon while others are censored before it, or a weight is multiplied by more
        than 20.

    Raises
    ------
    TypeError, ValueError
        For an argument of the wrong type or out of range, or a column that exists already.
    polars.exceptions.PolarsError
        For a column that does not exist; at collect, for an invalid time or weight, or an unnamed
        code.

    Notes
    -----
    Weights are divided by the Kaplan-Meier probability of being uncensored [1]_. Mean losses are
    then the losses of Graf et al. [2]_, and the AUC is cumulative and dynamic [3]_.
    [Formulas](../explanation/statistics.md#at_horizon).

    References
    ----------
    .. [1] Satten, G. A., Datta, S. (2001), American Statistician 55, 207-210.
    .. [2] Graf, E. et al. (1999), Statistics in Medicine 18, 2529-2545.
    .. [3] Blanche, P., Dartigues, J.-F., Jacqmin-Gadda, H. (2013), Statistics in Medicine 32,
       5381-5397.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> years, died = [1, 2, 3, 4, *[6, 7] * 5], [1, 0, 1, 0, *[1, 0] * 5]
    >>> df = pl.DataFrame({"years": years, "died": died})
    >>> wroc.at_horizon(df, "years", "died", 5).head(5)
    shape: (5, 5)
    ┌───────┬──────┬───────────────┬────────────────┬────────────────┐
    │ years ┆ died ┆ horizon_label ┆ horizon_weight ┆ horizon_status │
    │ ---   ┆ ---  ┆ ---           ┆ ---            ┆ ---            │
    │ i64   ┆ i64  ┆ i8            ┆ f64            ┆ str            │
    ╞═══════╪══════╪═══════════════╪════════════════╪════════════════╡
    │ 1     ┆ 1    ┆ 1             ┆ 1.0            ┆ event          │
    │ 2     ┆ 0    ┆ null          ┆ null           ┆ censored       │
    │ 3     ┆ 1    ┆ 1             ┆ 1.083333       ┆ event          │
    │ 4     ┆ 0    ┆ null          ┆ null           ┆ censored       │
    │ 6     ┆ 1    ┆ 0             ┆ 1.191667       ┆ no event       │
    └───────┴──────┴───────────────┴────────────────┴────────────────┘
    """
    columns.refuse_frequency(weight, "if weights are divided by probabilities")
    lazy: pl.LazyFrame = polars_frame(frame).lazy()
    if taken := [name for name in _COLUMNS if name in lazy.collect_schema()]:
        msg = f"`frame` must not have a column {taken[0]!r} already: drop or rename it"
        raise ValueError(msg)
    times = typed_column("time", as_column("time", time), lazy)
    outcome = typed_column("event", as_column("event", event), lazy)
    end = exact(horizon, times.dtype)
    moment = valid_weights(times)
    by_then = moment <= (horizon if end is None else end.cast(pl.Float64).item())
    weights = _weights(weight, lazy)
    codes = {"event_code": event_code, "censored_code": censored_code}
    if competing_code is not None:
        codes["competing_code"] = competing_code
    status = _status(outcome, codes, by_then)
    known = moment.is_not_null() & weights.is_not_null() & status.is_not_null()
    groups: dict[str, pl.Expr] = {} if by is None else named_keys(by, lazy, "by")
    # Until the end the label holds the time, since the caller's columns may have any other name.
    plan = lazy.with_columns(
        pl.when(known).then(moment).alias(_LABEL),
        pl.when(known).then(weights).alias(_WEIGHT),
        pl.when(known).then(status).alias(_STATUS),
    )
    value = pl.col(_WEIGHT)
    # A censored row leaves its share to the rows that are observed longer. The shares of equal
    # times multiply to the share of the time, so the order among them does not matter.
    censored = pl.col(_STATUS) == _CENSORED
    observed = value.fill_null(0.0).cum_sum(reverse=True)
    kept = pl.when(censored & (observed > 0)).then(observed.shift(-1, fill_value=0.0) / observed)
    uncensored = kept.otherwise(1.0).cum_prod()
    # Zero where no label is known; NaN where sums of weights overflow.
    identified = uncensored.last().is_between(0, 1, closed="right")
    factor = 1 / pl.when(identified).then(uncensored)
    factor = factor.over([*groups.values()] or None, order_by=[pl.col(_LABEL), censored])
    if most is not None:
        factor = factor.clip(upper_bound=most)
    unknown = [_CENSORED] if competing == "negative" else [_CENSORED, _COMPETING]
    labelled = pl.when(~pl.col(_STATUS).is_in(unknown))
    plan = plan.with_columns(labelled.then(value * factor).alias(_WEIGHT))
    label = pl.when(value.is_not_null()).then((pl.col(_STATUS) == _EVENT).cast(pl.Int8))
    table = like_input(frame, plan.with_columns(label.alias(_LABEL)))
    if isinstance(table, pl.DataFrame):
        _warn_of_little(table, weights, [*groups.values()])
    return table


def _weights(weight: IntoColumn | None, frame: pl.LazyFrame) -> pl.Expr:
    if weight is None:
        return pl.lit(1.0)
    return valid_weights(typed_column("weight", as_column("weight", weight), frame))


def _status(event: Typed, given: dict[str, object], by_then: pl.Expr) -> pl.Expr:
    """Return the status at the horizon; null where the event is."""
    code, dtype = event.column, event.dtype
    if dtype == pl.Boolean:
        code, dtype = code.cast(pl.Int8), pl.Int8()
    codes = []
    for name, value in given.items():
        held = exact(int(value) if isinstance(value, bool) else value, dtype)
        if held is None:
            found = f"{show_value(value)} for {event}"
            msg = f"`{name}` must be a possible value of `event`; found {found}"
            raise TypeError(msg)
        codes.append(held)
    listed = " or ".join(f"{name}={show_value(value)}" for name, value in given.items())
    if len({held.item() for held in codes}) < len(codes):
        msg = f"`event_code`, `censored_code` and `competing_code` must differ; found {listed}"
        raise ValueError(msg)
    is_event, is_censored, *is_other = (code == columns.literal(held) for held in codes)
    named = pl.any_horizontal(is_event, is_censored, *is_other).fill_null(value=True)
    fits = require_at_collect(named, f"`event` must hold {listed}", code)
    ended = pl.when(is_event).then(pl.lit(_EVENT)).when(is_censored).then(pl.lit(_CENSORED))
    status = pl.when(by_then).then(ended.otherwise(pl.lit(_COMPETING))).otherwise(pl.lit(_NO_EVENT))
    return pl.when(fits & code.is_not_null()).then(status)


def _warn_of_little(table: pl.DataFrame, weights: pl.Expr, groups: Sequence[pl.Expr]) -> None:
    """Warn if few rows are known at the horizon, overall or in one of the groups."""
    status = pl.col(_STATUS)
    keys = {f"__{number}": key for number, key in enumerate(groups)}
    factors = table.select(status, factor=pl.col(_WEIGHT) / weights, used=weights > 0, **keys)
    used = factors.filter("used", status.is_not_null())
    counts = used.group_by([*keys] or pl.lit(0)).agg(
        no_event=(status == _NO_EVENT).sum(),
        censored=(status == _CENSORED).sum(),
        largest_factor=pl.col("factor").max(),
    )
    few = (pl.col("censored") > 0) & (pl.col("no_event") < _FEW_ROWS)
    cases = {
        "no label is known": pl.col("largest_factor").is_null(),
        f"fewer than {_FEW_ROWS} rows are observed beyond the horizon": few,
        f"a weight is multiplied by more than {_LARGE_FACTOR}": (
            pl.col("largest_factor") > _LARGE_FACTOR
        ),
    }
    found = [text for text, holds in cases.items() if counts.filter(holds).height]
    if found:
        where = " in some of the groups" if groups else ""
        msg = f"limits may be too narrow{where}, because {' and '.join(found)}"
        warnings.warn(msg, UserWarning, stacklevel=3)
