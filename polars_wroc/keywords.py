"""Names of arguments that a function does not have, answered with what is meant."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from polars_wroc.checks import favorable_choice

# Names of arguments and options in other packages, and their names here.
_SYNONYMS: dict[str, tuple[str, ...]] = {
    "alpha": ("level",),
    "attr": ("attributes", "attribute", "by"),
    "attribute": ("attributes", "by"),
    "attributes": ("attribute", "by"),
    "by": ("attributes", "attribute", "over", "color"),
    "case_weights": ("weight",),
    "ci": ("level",),
    "cluster": ("design",),
    "col": ("facet",),
    "color_by": ("color",),
    "colour": ("color",),
    "colours": ("colors",),
    "clusters": ("design", "cluster"),
    "conf_level": ("level",),
    "confidence": ("level",),
    "confidence_level": ("level",),
    "control_features": ("within",),
    "cost_fn": ("fn",),
    "cost_fp": ("fp",),
    "cutoff": ("threshold",),
    "cutpoint": ("threshold",),
    "df": ("frame",),
    "data": ("frame",),
    "delimiter": ("separator",),
    "event_level": ("pos_label",),
    "favourable": ("favorable",),
    "figsize": ("width", "height"),
    "fn": ("cost_fn",),
    "fp": ("cost_fp",),
    "group": ("by", "attributes", "attribute", "color"),
    "group_by": ("by", "attributes", "attribute"),
    "groups": ("by", "attributes", "attribute"),
    "hue": ("color",),
    "metric": ("metrics",),
    "metrics": ("metric",),
    "n_bins": ("bins",),
    "n_boot": ("resamples",),
    "n_bootstrap": ("resamples",),
    "n_resamples": ("resamples",),
    "palette": ("colors",),
    "panel": ("facet",),
    "pos": ("pos_label",),
    "positive": ("pos_label",),
    "pred": ("score",),
    "prediction": ("score",),
    "predicted": ("score",),
    "predictor": ("score",),
    "prob": ("score",),
    "proba": ("score",),
    "probability": ("score",),
    "protected": ("attributes", "by", "attribute"),
    "protected_attributes": ("attributes", "by", "attribute"),
    "psu": ("cluster",),
    "random_state": ("seed",),
    "response": ("label",),
    "row": ("facet",),
    "sample_weight": ("weight",),
    "scores": ("score",),
    "segment": ("attributes", "by", "attribute"),
    "segments": ("attributes", "by", "attribute"),
    "sensitive": ("attributes", "by", "attribute"),
    "sensitive_features": ("attributes", "by", "attribute"),
    "sep": ("separator",),
    "stratum": ("strata",),
    "target": ("label",),
    "thresholds": ("threshold",),
    "truth": ("label",),
    "weights": ("weight",),
    "y": ("label",),
    # Predicted classes, unlike those of scores.
    "y_pred": ("selected", "score"),
    "y_prob": ("score",),
    "y_proba": ("score",),
    "y_score": ("score",),
    "y_true": ("label",),
}

# Replacements for an argument in functions that have one of these, or none ("").
_INSTEAD: dict[str, dict[str, str]] = {
    "max_fpr": {
        "fpr": "pass `fpr=(0, 0.1)`",
        "areas": "pass `areas={'early': wroc.PartialAUC(fpr=(0, 0.1))}`",
        "metrics": "for that area use `curve_metrics` with `metrics=wroc.PartialAUC(fpr=(0, 0.1))`",
        "": "for that area use `partial_auc` with `fpr=(0, 0.1)`",
    },
    "label": {"selected": "decisions are compared without labels"},
    "control_features": {
        "intersections": "to compare within their groups, use `group_gaps(within=...)`, or name "
        "them in `attributes` with `intersections=True`",
        "": "to compare within their groups, use `group_gaps(within=...)`",
    },
}
_INSTEAD["partial_auc"] = _INSTEAD["max_fpr"]
# Arguments whose words a message explains.
CHOICES = {"favorable": favorable_choice("being selected")}


def find_fault(
    known: Mapping[str, inspect.Parameter], n_args: int, keywords: Collection[str]
) -> str | None:
    """Return what is wrong with a call of a function with these arguments; None if it fits."""
    takes_others = any(each.kind is each.VAR_KEYWORD for each in known.values())
    for keyword in keywords:
        if keyword not in known and not takes_others:
            return f"has no argument `{keyword}`{hint_keyword(keyword, known)}"
    by_place = [name for name, each in known.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    if n_args > len(by_place):
        return _too_many(n_args, len(by_place), [name for name in known if name not in by_place])
    for number, name in enumerate(by_place[:n_args], 1):
        if name in keywords:
            return f"has `{name}` twice: as argument {number} and by its name"
    given = {*by_place[:n_args], *keywords}
    for name, each in known.items():
        is_needed = each.default is each.empty and each.kind is not each.VAR_KEYWORD
        if is_needed and name not in given:
            why = f": {CHOICES[name]}" if name in CHOICES else ""
            return f"needs `{name}`{why}"
    return None


def _too_many(n_args: int, most: int, others: Collection[str]) -> str:
    named = ", ".join(f"{name}=..." for name in others)
    if most:
        how = f"; name the others: {named}" if others else ""
        return f"takes at most {most} arguments without names; found {n_args}{how}"
    takes = f"its arguments by name: {named}" if others else "no arguments"
    return f"takes {takes}; found {n_args} without {'a name' if n_args == 1 else 'names'}"


def synonym(keyword: str, known: Collection[str]) -> str | None:
    """Return the known argument that another package calls so."""
    return next((name for name in _SYNONYMS.get(keyword.lower(), ()) if name in known), None)


def hint_keyword(keyword: str, known: Collection[str]) -> str:
    """End a message about an unknown argument with what is meant, or with all that are known."""
    if synonym(keyword, known) is None:
        for argument, remedy in _INSTEAD.get(keyword, {}).items():
            if argument in known or not argument:
                return f"; {remedy}"
    meant = synonym(keyword, known) or next(iter(get_close_matches(keyword, known, 1)), None)
    return f"; did you mean `{meant}`?" if meant else f"; it has {', '.join(known)}"
