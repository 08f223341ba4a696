"""The report: an audit as one HTML page that opens without a network."""

from polars_wroc.report.page import render

__all__ = ["render"]
