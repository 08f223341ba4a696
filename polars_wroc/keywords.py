"""Keywords of other packages, answered with the one that is meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# What other packages call an argument, and what it may be here.
_SYNONYMS: dict[str, tuple[str, ...]] = {
    "alpha": ("level",),
    "attribute": ("attributes",),
    "attributes": ("by",),
    "by": ("attributes", "over"),
    "case_weights": ("weight",),
    "ci": ("level",),
    "cluster": ("design",),
    "clusters": ("design",),
    "conf_level": ("level",),
    "confidence": ("level",),
    "confidence_level": ("level",),
    "control_features": ("within",),
    "cutoff": ("threshold",),
    "cutpoint": ("threshold",),
    "df": ("frame",),
    "data": ("frame",),
    "event_level": ("pos_label",),
    "favourable": ("favorable",),
    "group": ("by", "attributes"),
    "group_by": ("by", "attributes"),
    "groups": ("by", "attributes"),
    "metric": ("metrics",),
    "metrics": ("metric",),
    "n_bins": ("bins",),
    "n_boot": ("resamples",),
    "n_bootstrap": ("resamples",),
    "n_resamples": ("resamples",),
    "partial_auc": ("fpr", "areas"),
    "max_fpr": ("fpr", "areas"),
    "positive": ("pos_label",),
    "prediction": ("score",),
    "predictor": ("score",),
    "protected": ("attributes", "by"),
    "random_state": ("seed",),
    "response": ("label",),
    "sample_weight": ("weight",),
    "scores": ("score",),
    "segment": ("attributes", "by"),
    "segments": ("attributes", "by"),
    "sensitive_features": ("attributes", "by"),
    "target": ("label",),
    "thresholds": ("threshold",),
    "truth": ("label",),
    "weights": ("weight",),
    "y": ("label",),
    "y_pred": ("score", "selected"),
    "y_prob": ("score",),
    "y_proba": ("score",),
    "y_score": ("score",),
    "y_true": ("label",),
}


def hint_keywords(function: Callable[P, T]) -> Callable[P, T]:
    """Answer a keyword that the function does not have with the one that is meant."""
    known = inspect.signature(function).parameters

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for keyword in kwargs:
            if keyword not in known:
                msg = f"`{function.__name__}` has no argument `{keyword}`{_hint(keyword, known)}"
                raise TypeError(msg)
        return function(*args, **kwargs)

    return checked


def _hint(keyword: str, known: Collection[str]) -> str:
    meant = [name for name in _SYNONYMS.get(keyword.lower(), ()) if name in known]
    found = meant[:1] or get_close_matches(keyword, known, 1)
    return f"; did you mean `{found[0]}`?" if found else f"; it has {', '.join(known)}"
