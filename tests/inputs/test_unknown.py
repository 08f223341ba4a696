"""Names of categories that may mean that a value is not known."""

from __future__ import annotations

import ast

import polars as pl
from audit_words import cautions

import polars_wroc as wroc

UNKNOWN = [
    *("Unknown", " UNKNOWN ", "N/A", "n/a", "NA", "(missing)", "", " ", "-", "?", "[unknown]"),
    *("none given", "Not stated", "not_specified", "Not disclosed", "Prefer not to say"),
    *("prefer  not-to-say", "Declined", "decline to state", "Unknown or Not Reported"),
    *("Unknown/not stated", "null", "NaN"),
]
KNOWN = [
    *("None", "none", "Other", "other/unknown race", "Nanjing", "no", "White", "Not Hispanic"),
    *("Native American", "0", "A", "not", "Declination", "Two or more", "NA-1"),
]


def test_audits_name_the_categories_that_may_mean_unknown_and_no_others() -> None:
    frame = pl.DataFrame({"g": [*UNKNOWN, *KNOWN] * 4, "s": range(4 * len([*UNKNOWN, *KNOWN]))})
    audit = wroc.audit(frame.with_columns(y=pl.col("s") % 2), "y", "s", attributes="g")
    (hint,) = [text for text in cautions(audit) if "like any other category" in text]
    found = ast.literal_eval(hint.partition("give unknown=")[2].partition(" in Python")[0])
    assert sorted(found) == sorted(UNKNOWN)


def test_audits_hint_at_them_once_for_each_attribute() -> None:
    frame = pl.DataFrame(
        {
            "g": ["a", "Unknown"] * 40,
            "h": ["", "u", "v", "u"] * 20,
            "y": [True, True, False, False] * 20,
            "s": [i % 7 for i in range(80)],
        }
    )
    audit = wroc.audit(frame, "y", "s", attributes=["g", "h"], intersections=True)
    (hint,) = [text for text in cautions(audit) if "like any other category" in text]
    assert hint == (
        "'Unknown' of g and '' of h are compared like any other category. If this means that the "
        "value is not known, give unknown=['Unknown', ''] in Python, or --unknown Unknown "
        "--unknown '' on the command line."
    )
    assert hint in " ".join(str(audit).split())
    # What is already unknown stays on the list.
    partly = wroc.audit(frame, "y", "s", attributes=["g", "h"], unknown=["v", "Unknown"])
    (hint,) = [text for text in cautions(partly) if "like any other category" in text]
    assert hint.startswith("'' of h is compared like any other category.")
    assert "give unknown=['v', 'Unknown', ''] in Python, or --unknown v --unknown Unknown" in hint
    cleared = frame.with_columns(pl.col("g", "h").replace(["Unknown", ""], [None, None]))
    again = wroc.audit(cleared, "y", "s", attributes=["g", "h"], intersections=True)
    assert "like any other category" not in " ".join([*cautions(again), str(again)])
