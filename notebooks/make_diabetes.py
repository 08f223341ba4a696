"""Make ``polars_wroc/data/diabetes.parquet`` from the diabetes study bundled with scikit-learn.

One row per patient, 442 in all (Efron, Hastie, Johnstone and Tibshirani, 2004, "Least angle
regression", Annals of Statistics 32, 407-499):

``patient``
    Number of the row in the source, from 0.
``sex``
    The source codes it 1 and 2 and does not document clearly which is which. Here 1 is taken
    as female and 2 as male, because the patients coded 2 have the lower HDL cholesterol and
    the higher blood pressure. Treat the names as a convention of this example.
``age``, ``age_band``
    Years, and "under 40", "40 to 54" or "55 and over", in this order (an Enum).
``progressed``
    Whether the disease progression after one year is above the median.
``score``, ``score_b``
    Out-of-fold probabilities of ``progressed``: of a logistic regression on all ten
    variables, and of the 25 nearest neighbours by body mass index and blood pressure, which
    has many ties.
``weight``
    Post-stratification weight by sex and age band to the population in `TARGET_SHARES`,
    mean 1. Those shares are invented for illustration and describe no real population.

Run ``python notebooks/make_diabetes.py``; the result is the same every time.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

AGE_BANDS = pl.Enum(["under 40", "40 to 54", "55 and over"])
TARGET_SHARES = pl.DataFrame(
    [
        ("female", "under 40", 0.180),
        ("female", "40 to 54", 0.130),
        ("female", "55 and over", 0.200),
        ("male", "under 40", 0.185),
        ("male", "40 to 54", 0.130),
        ("male", "55 and over", 0.175),
    ],
    schema={"sex": pl.String, "age_band": AGE_BANDS, "share": pl.Float64},
    orient="row",
)

ALL_VARIABLES = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]


def diabetes() -> pl.DataFrame:
    """Return the table that this script writes."""
    study = load_diabetes(scaled=False)
    source = pl.DataFrame(study.data, schema=study.feature_names)
    progressed = pl.Series("progressed", study.target).to_frame().select(_above_median())
    patients = source.select(_sex(), _age_band(), pl.col("age").cast(pl.Int32)).with_columns(
        progressed.to_series(),
        _out_of_fold(source.select(ALL_VARIABLES), progressed, LogisticRegression(), "score"),
        _out_of_fold(
            source.select("bmi", "bp"), progressed, KNeighborsClassifier(n_neighbors=25), "score_b"
        ),
    )
    return (
        patients.with_row_index("patient")
        .join(TARGET_SHARES, on=["sex", "age_band"], how="left", maintain_order="left")
        .select(
            pl.col("patient").cast(pl.Int32),
            "sex",
            "age",
            "age_band",
            "progressed",
            "score",
            "score_b",
            _weight().alias("weight"),
        )
    )


def _sex() -> pl.Expr:
    return pl.col("sex").replace_strict({1.0: "female", 2.0: "male"})


def _age_band() -> pl.Expr:
    young, middle = pl.col("age") < 40, pl.col("age") < 55  # noqa: PLR2004
    band = pl.when(young).then(pl.lit("under 40")).when(middle).then(pl.lit("40 to 54"))
    return band.otherwise(pl.lit("55 and over")).cast(AGE_BANDS).alias("age_band")


def _above_median() -> pl.Expr:
    return pl.col("progressed") > pl.col("progressed").median()


def _weight() -> pl.Expr:
    sample_share = pl.len().over("sex", "age_band") / pl.len()
    return pl.col("share") / sample_share


def _out_of_fold(
    variables: pl.DataFrame,
    label: pl.DataFrame,
    model: LogisticRegression | KNeighborsClassifier,
    name: str,
) -> pl.Series:
    """Predict each patient by a model that was fitted to the other four fifths."""
    folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=2004)
    probabilities = cross_val_predict(
        make_pipeline(StandardScaler(), model),
        variables.to_numpy(),
        label.to_series().to_numpy(),
        cv=folds,
        method="predict_proba",
    )
    return pl.Series(name, probabilities[:, 1])


def main() -> None:
    """Write the table into the package."""
    path = Path(__file__).parents[1] / "polars_wroc" / "data" / "diabetes.parquet"
    table = diabetes()
    table.write_parquet(path)
    print(f"{path.name}: {table.height} patients")


if __name__ == "__main__":
    main()
