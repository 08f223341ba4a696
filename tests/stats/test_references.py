"""References: sums and means of other segments against plain loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from polars_wroc.stats.references import Reference

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

VALUES = np.array([[3.0, 1e20, 2.0, 0.0, 5.0, 7.0], [1.0, 0.0, 0.0, 4.0, 2.0, 6.0]])
STARTS = np.array([0, 2, 3])


def plain_places(reference: Reference, own: int, number: int) -> Sequence[int]:
    """Return the places of the segments that one is compared with."""
    if isinstance(reference.kind, int):
        return [reference.kind]
    places = [place for place in range(number) if place != own]
    if reference.counts is not None:
        places = [place for place in places if reference.counts[place]]
    if reference.kind == "earlier":
        starts = [0] if reference.starts is None else [*reference.starts]
        first = max(start for start in starts if start <= own)
        places = [place for place in places if first <= place < own]
    return places


REFERENCES = [
    Reference("rest"),
    Reference("overall"),
    Reference("earlier"),
    Reference("earlier", starts=STARTS),
    Reference(3),
    Reference("rest", counts=np.array([True, False, True, True, False, True])),
]


@pytest.mark.parametrize("reference", REFERENCES, ids=str)
def test_sums_and_means_are_those_of_the_other_segments(reference: Reference) -> None:
    weights = np.array([0.0, 2.0, 3.0, 1.0, 0.5, 4.0])
    values = np.where(weights > 0, VALUES, np.nan)
    sums = reference.add_others(VALUES)
    for power in (1, 2):
        means = reference.average_others(values, weights, power)
        for own in range(VALUES.shape[1]):
            places = plain_places(reference, own, VALUES.shape[1])
            used = [place for place in places if weights[place] > 0]
            for row in (0, 1):
                assert sums[row, own] == sum(VALUES[row, place] for place in places)
                total = sum(weights[place] for place in places)
                terms = sum(weights[place] ** power * values[row, place] for place in used)
                expected = terms / total**power if total else np.nan
                assert means[row, own] == pytest.approx(expected, nan_ok=True)


def test_a_large_value_is_left_out_without_losing_the_others() -> None:
    assert Reference("rest").add_others(VALUES)[0, 1] == 3 + 2 + 0 + 5 + 7


def test_what_is_unknown_of_a_period_is_unknown_of_later_ones_of_its_series_only() -> None:
    values = np.array([1.0, np.nan, 2.0, 3.0, 4.0])
    found = Reference("earlier", starts=np.array([0, 3])).add_others(values)
    assert np.isnan(found).tolist() == [False, False, True, False, False]


def test_references_of_no_segments() -> None:
    for reference in (Reference("rest"), Reference("earlier", starts=np.zeros(0, np.int64))):
        assert reference.add_others(np.zeros((2, 0))).shape == (2, 0)
    assert np.isnan(Reference(-1).add_others(VALUES)).all()
    assert not Reference(-1).is_own(3).any()
    assert Reference(1).is_own(3).tolist() == [False, True, False]
