"""Sample data for examples, as ``wroc.data``."""

from __future__ import annotations

from pathlib import Path

import polars as pl

__all__ = ["diabetes", "loans"]


def loans() -> pl.DataFrame:
    """Decisions on mortgage applications in Boston, 1990.

    Returns
    -------
    pl.DataFrame
        One row per application, 1,989 in all [1]_: its number in the source, ``application``
        (Int32); ``approved`` (Boolean), the decision of the lender, no repayment; ``score``
        (Float64), an out-of-fold probability of approval by a logistic regression on twelve
        variables that name no protected attribute; ``race`` (String), "black", "hispanic", or
        "white" where the source says neither; ``sex`` (String), null in 15 rows.

    References
    ----------
    .. [1] Hunter, W. C., Walker, M. B. (1996), Journal of Real Estate Finance and Economics 13,
       57-70.

    Examples
    --------
    >>> import polars_wroc as wroc
    >>> wroc.data.loans().shape
    (1989, 5)
    """
    return _read("loans")


def diabetes() -> pl.DataFrame:
    """Progression of diabetes within a year, with two scores that predict it.

    Returns
    -------
    pl.DataFrame
        One row per patient, 442 in all [1]_: its number in the source, ``patient``; ``sex``
        (String), whose names are a convention of this example, since the source has only codes;
        ``age`` in years and ``age_band`` (Enum); ``progressed`` (Boolean), whether the progression
        is above the median; ``score`` and ``score_b`` (Float64), out-of-fold probabilities of that
        by a logistic regression on all variables, and by nearest neighbours, with many ties;
        ``weight`` (Float64) to a population that is invented for illustration.

    References
    ----------
    .. [1] Efron, B. et al. (2004), Annals of Statistics 32, 407-499.

    Examples
    --------
    >>> import polars_wroc as wroc
    >>> wroc.data.diabetes().shape
    (442, 8)
    """
    return _read("diabetes")


def _read(name: str) -> pl.DataFrame:
    return pl.read_parquet(Path(__file__).with_name(f"{name}.parquet"))
