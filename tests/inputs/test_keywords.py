"""Keywords that other packages have lead to those of this one."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import polars_wroc as wroc

ROWS = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": ["a", "a", "b", "b"]})
CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "scikit-learn's weights": ("summary", {"sample_weight": "s"}, "weight"),
    "groups of a comparison": ("group_gaps", {"by": "g"}, "attributes"),
    "groups of a table": ("summary", {"attributes": "g"}, "by"),
    "fairlearn's groups": ("fairness", {"sensitive_features": "g"}, "attributes"),
    "British spelling": ("audit", {"attributes": "g", "favourable": "selected"}, "favorable"),
    "a typing error": ("trend", {"over": "g", "theshold": 0.5}, "threshold"),
    "yardstick's level": ("calibration_curve", {"conf_level": 0.9}, "level"),
}


@pytest.mark.parametrize(("name", "given", "meant"), CALLS.values(), ids=list(CALLS))
def test_unknown_keyword_names_the_one_that_is_meant(
    name: str, given: dict[str, Any], meant: str
) -> None:
    expected = rf"^`{name}` has no argument `\w+`; did you mean `{meant}`\?$"
    with pytest.raises(TypeError, match=expected):
        getattr(wroc, name)(ROWS, "y", "s", **given)
    method = getattr(ROWS.wroc, name)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=expected):
        method("y", "s", **given)


def test_unknown_keyword_of_an_expression() -> None:
    ks: Any = wroc.ks
    with pytest.raises(TypeError, match=r"^`ks` has no argument `y_true`; did you mean `label`\?$"):
        ks(y_true="y", score="s")
    with pytest.raises(TypeError, match=r"^`ks` has no argument `q`; it has label, score, weight"):
        ks("y", "s", q=1)
