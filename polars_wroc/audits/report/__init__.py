"""The report: an audit as one HTML page that opens without a network."""

from polars_wroc.audits.report.page import render

__all__ = ["render"]
