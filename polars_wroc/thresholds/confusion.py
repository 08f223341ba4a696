"""The confusion matrix at a threshold, and the rates and sums of it as expressions."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_wroc.ranking.curve import ratio


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix at a threshold, with the weight of each class."""

    threshold: pl.Expr
    tp: pl.Expr
    fp: pl.Expr
    fn: pl.Expr
    tn: pl.Expr
    positives: pl.Expr
    negatives: pl.Expr

    @property
    def total(self) -> pl.Expr:
        """Weight of all rows."""
        return self.positives + self.negatives

    @property
    def tpr(self) -> pl.Expr:
        """True positive rate."""
        return ratio(self.tp, self.positives)

    @property
    def fpr(self) -> pl.Expr:
        """False positive rate."""
        return ratio(self.fp, self.negatives)

    @property
    def tnr(self) -> pl.Expr:
        """True negative rate."""
        return ratio(self.tn, self.negatives)

    @property
    def fnr(self) -> pl.Expr:
        """False negative rate."""
        return ratio(self.fn, self.positives)

    @property
    def ppv(self) -> pl.Expr:
        """Positive predictive value."""
        return ratio(self.tp, self.tp + self.fp)

    @property
    def npv(self) -> pl.Expr:
        """Negative predictive value."""
        return ratio(self.tn, self.tn + self.fn)

    @property
    def fdr(self) -> pl.Expr:
        """False discovery rate."""
        return ratio(self.fp, self.tp + self.fp)

    @property
    def false_omission_rate(self) -> pl.Expr:
        """False omission rate."""
        return ratio(self.fn, self.tn + self.fn)

    @property
    def prevalence(self) -> pl.Expr:
        """Prevalence."""
        return ratio(self.positives, self.total)


@dataclass(frozen=True)
class EstimatedConfusion(Confusion):
    """A confusion matrix whose predictive values do not follow from its cells."""

    estimated_ppv: pl.Expr
    estimated_npv: pl.Expr

    @property
    def ppv(self) -> pl.Expr:
        """Positive predictive value."""
        return self.estimated_ppv

    @property
    def npv(self) -> pl.Expr:
        """Negative predictive value."""
        return self.estimated_npv

    @property
    def fdr(self) -> pl.Expr:
        """False discovery rate."""
        return 1 - self.estimated_ppv

    @property
    def false_omission_rate(self) -> pl.Expr:
        """False omission rate."""
        return 1 - self.estimated_npv
