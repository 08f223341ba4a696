"""Audits of segments: measurement, tests, gates and the report."""
