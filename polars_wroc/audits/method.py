"""The method of an audit: paragraphs on everything that was used, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from polars_wroc.audits.amounts import write_margin
from polars_wroc.audits.tables import AuditSettings, AuditTables
from polars_wroc.audits.words import Words
from polars_wroc.documents.blocks import TextBlock
from polars_wroc.documents.numbers import write_points
from polars_wroc.inputs.columns import OVERALL
from polars_wroc.looks import Looks
from polars_wroc.names import escape_controls, quote
from polars_wroc.thresholds.rules import Rule, expected_optimism

_RULES = {
    "youden": "the largest difference between true and false positive rate",
    "closest_topleft": "the point of the ROC curve closest to the top left",
    "max_accuracy": "the fewest errors",
    "least_cost": "the least expected cost",
    "max_fpr": "the highest true positive rate with a false positive rate of at most {:g}",
    "min_tpr": "the lowest false positive rate with a true positive rate of at least {:g}",
    "max_selection_rate": "the highest selection rate that is at most {:g}",
}
_COSTS = {
    "fn": "cost {:g} of a false negative",
    "fp": "cost {:g} of a false positive",
    "prevalence": "prevalence {:g}",
}
# Smaller differences count as equal.
_LEAST_SHOWN = 0.01
_ADJUSTED = {
    "holm": "adjusted for the number of comparisons (Holm)",
    "bh": "adjusted for the number of comparisons (Benjamini and Hochberg)",
    "none": "not adjusted for the number of comparisons",
}
_CALIBRATION = (
    "“Score too high by” is the mean score minus the share that came true, in percentage points. "
    "At equal scores, outcomes of a group are compared with those of others that have the same "
    "score."
)


def write_method(audit: AuditTables, words: Words) -> list[TextBlock]:
    """Return the paragraphs that this audit needs."""
    paragraphs = {
        "Decisions": _explain_decisions(audit, words),
        "Comparison": _explain_comparison(audit.settings, words),
    }
    if words.knows_good:
        paragraphs["Impact ratio"] = (
            f"The share of a group that is {words.good}, divided by the highest share among the "
            "groups of the attribute. Many regulators look closer if it is below four fifths "
            "(0.8), which is a convention and not a legal limit. Its interval holds for all pairs "
            "of groups at once, because the highest share was picked."
        )
    if audit.settings.labeled:
        paragraphs["Ranking"] = (
            f"AUC is the probability that one of {words.among('positive')} has a higher score "
            f"than one of {words.among('negative')}: 0.5 is chance, 1 is perfect."
        )
        paragraphs["Calibration"] = _CALIBRATION
    paragraphs["Intervals"] = _explain_intervals(audit, words)
    if words.knows_good:
        paragraphs["Worse and better"] = _explain_harm(audit.settings, words)
    sources = ", ".join(_list_sources(audit.settings))
    paragraphs["Sources"] = f"{sources}. The documentation of polars-wroc has all formulas."
    return [TextBlock(text, lead=f"{title}.") for title, text in paragraphs.items()]


def _explain_decisions(audit: AuditTables, words: Words) -> str:
    settings = audit.settings
    if settings.selected is not None:
        not_by_score = " They were not made by the score." if settings.score else ""
        return f"As recorded in {quote(settings.selected)}.{not_by_score}"
    if settings.favorable is None:
        return "None were audited, because no threshold was given."
    decided = f"Everyone with a score of at least the threshold is {words.selected}."
    return f"{decided}{_explain_rule(settings.rule)} {_say_optimism(audit, words)}".strip()


def _explain_rule(rule: Rule | None) -> str:
    """Return the paragraph on how a rule chose the threshold; empty without a rule."""
    if rule is None:
        return ""
    options = {name: value for name, value in rule.options if value is not None}
    costs = [text.format(options[name]) for name, text in _COSTS.items() if name in options]
    what = _RULES[rule.name].format(*options.values())
    after = f" ({', '.join(costs)})" if costs else ""
    return f" The threshold has {what}{after}, chosen for each score on all rows."


def _say_optimism(audit: AuditTables, words: Words) -> str:
    """Return the sentences on optimistic results at a threshold chosen on the same rows."""
    settings = audit.settings
    chosen = "Since" if settings.rule is not None else "If"
    start = f"{chosen} the threshold was chosen on these same rows"
    if not settings.labeled:
        return f"{start}, other rows may have other rates."
    positives = audit.segments.filter(attribute=OVERALL)["n_pos"][0]
    if not positives:
        return ""
    what = f"the share of {words.among('positive')} who are {words.selected}"
    lower = expected_optimism(None if settings.rule is None else settings.rule.name, positives)
    if lower is None:
        few = "too few to say by how much"
        return f"{start}, expect {what} to be lower on other rows; {positives:,} are {few}."
    size = "less than 1 point"
    if lower >= _LEAST_SHOWN:
        size = f"about {write_points(round(lower, 2))}"
    return f"{start}, expect {what} to be {size} lower on other rows."


def _explain_comparison(settings: AuditSettings, words: Words) -> str:
    others = "all rows" if words.kind == "overall" else "all other rows of the attribute"
    if words.named:
        named = ", ".join(words.group(*keys) for keys in words.named.items())
        others = f"{named} or, for attributes without a named group, with {others}"
    return (
        f"Each group is compared with {others}. A difference is shown if chance is an unlikely "
        f"explanation: its p-value, {_ADJUSTED[settings.adjust]}, is at most "
        f"{1 - settings.confidence:.2g}. It is coloured if it is also at least "
        f"{write_margin(settings.margin)}, or if an impact ratio is below four fifths. “≈” means "
        "that the difference is shown to be smaller than that. Other numbers are inconclusive, "
        "which does not mean equal, or differ by less than that."
    )


def _explain_intervals(audit: AuditTables, words: Words) -> str:
    settings = audit.settings
    text = (
        f"In about {100 * settings.confidence:.4g}% of such samples they contain the true value; "
        f"they are wide for small groups. A number that is based on fewer than {settings.min_rows} "
        f"{words.rows} of a group is not tested."
    )
    if settings.design is not None:
        text += f" Variances come from the design ({_name_design(settings.design)})"
        if audit.run.design_df is not None:
            text += f", with {audit.run.design_df} degrees of freedom"
        text += "."
    elif settings.weight is not None and not settings.frequency:
        text += " Intervals allow for unequal weights (Kish)."
    if isinstance(settings.level, Looks):
        text += f" They hold at every look, and are tightest at {settings.level.planned:,.0f} rows."
    return text


def _name_design(design: Mapping[str, Any]) -> str:
    """Return the parts of a survey design as text."""
    if "replicates" in design:
        return f"replicate weights: {design['replicates']}"
    named = {"sampling units": "cluster", "strata": "strata", "sampled shares": "fpc"}
    parts = [f"{what}: {design[key]}" for what, key in named.items() if design.get(key)]
    return escape_controls("; ".join(parts))


def _explain_harm(settings: AuditSettings, words: Words) -> str:
    quality, side = ("bad", "higher") if words.favorable == "rejected" else ("good", "lower")
    text = (
        f"Since being {words.selected} is {quality}, a group is worse off if a {side} share of it "
        f"is {words.selected}, by at least {write_margin(settings.margin)} or with a ratio below "
        "four fifths"
    )
    if not settings.labeled:
        return f"{text}."
    return (
        f"{text}, overall or among {words.deserving}. Ranking, precision and calibration are "
        f"neither worse nor better: they also differ if only the share {words.positive} differs."
    )


def _list_sources(settings: AuditSettings) -> Iterator[str]:
    if settings.labeled:
        yield "DeLong et al. (1988) for AUC"
    yield "Newcombe (1998) for intervals"
    if settings.adjust == "holm":
        yield "Holm (1979) for many comparisons"
