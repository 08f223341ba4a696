"""The list of commands: their purposes, required options and examples."""

from __future__ import annotations

import re
from textwrap import indent, wrap
from typing import NamedTuple

# Help fits a narrow terminal.
_WIDTH = 79
ROW_OPTIONS = "FILE --label COLUMN --score COLUMN"


class About(NamedTuple):
    """The purpose of a command, its required options, and an example with its purpose."""

    text: str
    purpose: str
    example: str
    # The options that must be given, at least for rows.
    required: str = ROW_OPTIONS
    # Examples of --fail-if, the last in SQL; empty where the command has no conditions.
    conditions: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """The line above the text: what must be given."""
        program, command = self.example.split()[:2]
        words = filter(None, ("Usage:", program, command, self.required, "[OPTIONS]"))
        # An option stays in one line with its value.
        text = re.sub(r"(--\S+) ", "\\1\N{NO-BREAK SPACE}", " ".join(words))
        lines = wrap(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")

    @property
    def help(self) -> str:
        """The text above the options of the command."""
        paragraphs = [f"{self.text}.", f"For example, to {self.purpose}:", _indent(self.example)]
        if self.conditions:
            conditions = "\n".join(quote_condition(condition) for condition in self.conditions)
            paragraphs += ["Conditions for --fail-if, for example:", _indent(conditions)]
        return "\n\n".join(paragraphs) + "\n"


def _indent(code: str) -> str:
    """Indent code, which makes it code in Markdown too."""
    return indent(code, "    ")


def quote_condition(condition: str) -> str:
    """Quote a condition for the shell, where texts in SQL have single quotes."""
    return f'"{condition}"' if "'" in condition else f"'{condition}'"


# The commands, in the parts of their list.
COMMAND_PARTS = {
    "Reports": {
        "audit": About(
            "AUCs, decisions and gaps of segments, or decisions without a label, as a report",
            "write a report on sex and on ranges of age",
            "polars-wroc audit loans.csv --label repaid --score s \\\n"
            "  --attribute sex --attribute age:18,30,50 \\\n"
            "  --threshold 0.5 --favorable selected -o report.html",
            required=f"{ROW_OPTIONS} --attribute COLUMN",
            conditions=(
                "tpr.gap_high<-0.05",
                "race=black:tpr.verdict=different",
                "abs(gap) > 0.05 AND n > 500",
            ),
        ),
        "demo": About(
            "The audit of bundled loan applications, and the command that does the same",
            "write report.html",
            "polars-wroc demo",
            required="",
        ),
        "diff": About(
            "What changed between two audits of different rows",
            "fail if a gap in AUC has grown by more than two points",
            "polars-wroc diff march.json april.json --fail-if 'auc_gap.growth>0.02'",
            required="BEFORE AFTER",
            conditions=(
                "auc_gap.growth>0.02",
                "tpr.verdict=different",
                "abs(gap) > 0.05 AND n > 500",
            ),
        ),
        "impact": About(
            "Selection rates of categories divided by the highest, without a label",
            "fail if the whole interval of an impact ratio is below four fifths",
            "polars-wroc impact hires.csv --selected hired --favorable selected \\\n"
            "  --attribute sex --attribute race --fail-if 'impact_ratio.ratio_high<0.8'",
            required="FILE --selected COLUMN --favorable CHOICE --attribute COLUMN",
            conditions=(
                "impact_ratio.ratio_high<0.8",
                "race=black:impact_ratio.ratio<0.8",
                "ratio < 0.8 AND n > 500",
            ),
        ),
        "new-york": About(
            "The summary of a bias audit that New York City asks employers to publish",
            "write the summary of decisions by sex, race and both",
            "polars-wroc new-york hires.csv --selected decision=hired \\\n"
            "  --attribute sex --attribute race --source 'All applications of 2025' \\\n"
            "  --distribution-date 2026-01-15 -o summary.html",
            required="FILE --selected COLUMN --attribute COLUMN --source TEXT "
            "--distribution-date DATE",
        ),
    },
    "Scores": {
        "auc": About(
            "The AUC and other metrics of each group",
            "draw the AUC of each site with its interval",
            "polars-wroc auc loans.parquet --label repaid --score s --by site -o auc.svg",
            conditions=("auc<0.7", "auc_high < 0.7 AND n > 500"),
        ),
        "compare": About(
            "Tests whether two or more scores have different AUCs on the same rows",
            "compare a new score with the old one",
            "polars-wroc compare loans.parquet --label repaid --score old --score new",
            required=f"{ROW_OPTIONS} --score COLUMN",
            conditions=("auc.gap<0", "gap_high < 0 AND n > 500"),
        ),
        "release": About(
            "Whether a new score is no worse than the old one on the same rows, in every segment",
            "fail if the new score is significantly worse, in all rows or for a sex",
            "polars-wroc release validation.parquet --label repaid --old s1 --new s2 \\\n"
            "  --threshold 0.5 --attribute sex -o release.html \\\n"
            "  --fail-if 'any.verdict=worse'",
            required="FILE --label COLUMN --old COLUMN --new COLUMN",
            conditions=("auc.gap_high<0", "any.verdict=worse", "gap < -0.05 AND n > 500"),
        ),
        "validate": About(
            "The measures that a validation of a risk model reports, with their limits",
            "validate a model at each site",
            "polars-wroc validate patients.parquet --label died --score risk --by site",
            conditions=(
                "measure = 'auc' AND value_high < 0.7",
                "measure = 'oe_ratio' AND value_low > 1.2",
            ),
        ),
        "calibrate": About(
            "Whether scores are probabilities: observed rates in bins, and the calibration slope",
            "show the calibration of each sex in bins of equal weight",
            "polars-wroc calibrate loans.parquet --label repaid --score s \\\n"
            "  --by sex --strategy quantile",
        ),
        "curve": About(
            "ROC and other curves, as a drawing of characters, a table or a chart",
            "draw the precision-recall curve of each site",
            "polars-wroc curve loans.parquet --label repaid --score s \\\n"
            "  --by site --kind pr -o pr.png",
        ),
        "thresholds": About(
            "Rates at thresholds, or at one that a rule chooses",
            "find the lowest threshold that at most a tenth of the negatives reach",
            "polars-wroc thresholds loans.parquet --label repaid --score s \\\n"
            "  --threshold max-fpr=0.1",
            required=f"{ROW_OPTIONS} --threshold NUMBER",
            conditions=("fpr>0.1", "tpr_high < 0.7 AND tp + fn > 500"),
        ),
    },
    "Groups and periods": {
        "gaps": About(
            "Tests whether groups differ from a reference in AUC or in rates",
            "compare the true positive rate of each site with that of the others",
            "polars-wroc gaps loans.parquet --label repaid --score s --attribute site \\\n"
            "  --threshold 0.5 --metric tpr",
            required=f"{ROW_OPTIONS} --attribute COLUMN",
            conditions=(
                "auc.gap_high<-0.05",
                "race=black:auc.verdict=different",
                "abs(gap) > 0.05 AND n > 500",
            ),
        ),
        "fairness": About(
            "Fairness metrics of each attribute: its most different groups, with joint limits",
            "fail if equalized odds are significantly violated",
            "polars-wroc fairness loans.parquet --label repaid --score s \\\n"
            "  --threshold 0.5 --attribute race \\\n"
            "  --fail-if 'equalized_odds_difference.gap_low>0.1'",
            required="FILE --score COLUMN --threshold NUMBER --attribute COLUMN",
            conditions=("equalized_odds_difference.gap_low>0.1", "gap > 0.1 AND n > 500"),
        ),
        "search": About(
            "Searches all combinations of attributes for segments that are significantly worse",
            "find the combinations in which fewest of those who repaid are selected",
            "polars-wroc search loans.parquet --label repaid --score s \\\n"
            "  --attribute site --attribute sex --attribute age:30,50 \\\n"
            "  --threshold 0.5 --favorable selected",
            required=f"{ROW_OPTIONS} --threshold NUMBER --favorable CHOICE --attribute COLUMN",
        ),
        "trend": About(
            "Metrics by period, each compared with all earlier periods, and shifts of scores",
            "fail if the AUC of the last month is significantly lower",
            "polars-wroc trend days.parquet --label repaid --score s \\\n"
            "  --over day --every 1mo \\\n"
            "  --fail-if \"metric = 'auc' AND gap < 0 AND verdict = 'different'\"",
            required="FILE --score COLUMN --over COLUMN",
            conditions=(
                "auc.gap_high<-0.05",
                "auc.verdict=different",
                "abs(gap) > 0.05 AND n > 500",
            ),
        ),
    },
    "Planning and counting": {
        "size": About(
            "How many rows a width, a gap, an equivalence or a margin needs",
            "ask how many positives show that tpr is equivalent within 5 points",
            "polars-wroc size audit.json --metric tpr --equivalent-within 0.05",
            required="",
        ),
        "counts": About(
            "Counts of rows by score, which add up and can replace the rows; adds up counts",
            "count the rows of a day by sex",
            "polars-wroc counts monday.csv --label repaid --score s \\\n"
            "  --by sex -o monday.parquet",
            required="FILE --score COLUMN --output FILE",
        ),
    },
}
COMMANDS = {name: about for part in COMMAND_PARTS.values() for name, about in part.items()}
