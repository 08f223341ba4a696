"""Options about decisions: recorded ones, thresholds, and rules that choose a threshold."""

from __future__ import annotations

import argparse
from typing import get_args

from polars_wroc.inputs.decisions import Favorable
from polars_wroc.thresholds.rules import Criterion

# Which prevalence an option is about.
_OF_COST = "that the cost is for"


def add_selected(parser: argparse._ActionsContainer) -> None:
    """Name the column of recorded decisions."""
    parser.add_argument(
        "--selected",
        metavar="D",
        help="column of recorded decisions: a Boolean one, or such as decision=hired, the value "
        "of those who are selected",
    )


def add_favorable(parser: argparse.ArgumentParser) -> None:
    """Choose the decision that is good for a row."""
    parser.add_argument(
        "--favorable",
        choices=get_args(Favorable),
        help="which decision is good for a person, if any; needed where there are decisions",
    )


def add_threshold(parser: argparse.ArgumentParser) -> None:
    """Choose where decisions are measured."""
    group = parser.add_argument_group(
        "decisions", "of a threshold, of a rule that chooses it, or recorded ones"
    )
    add_selected(group)
    group.add_argument(
        "--threshold", type=float, metavar="T", help="scores of at least T are positive"
    )
    add_rule(group)


def add_rule(group: argparse._ActionsContainer, prevalence: str = _OF_COST) -> None:
    """Choose a threshold by a rule."""
    group.add_argument(
        "--criterion", choices=get_args(Criterion), help="what the threshold optimises"
    )
    add_costs(group, prevalence)
    group.add_argument(
        "--max-fpr", type=float, metavar="R", help="highest tpr with an fpr of at most R"
    )
    group.add_argument(
        "--min-tpr", type=float, metavar="R", help="lowest fpr with a tpr of at least R"
    )
    group.add_argument(
        "--max-selection-rate", type=float, metavar="R", help="highest selection rate of at most R"
    )


def add_costs(group: argparse._ActionsContainer, prevalence: str = _OF_COST) -> None:
    """Weigh errors by their costs; ``prevalence`` says what its option is for."""
    group.add_argument("--cost-fn", type=float, metavar="C", help="cost of a false negative")
    group.add_argument("--cost-fp", type=float, metavar="C", help="cost of a false positive")
    group.add_argument(
        "--prevalence",
        type=float,
        metavar="P",
        help=f"prevalence in the population {prevalence}",
    )
