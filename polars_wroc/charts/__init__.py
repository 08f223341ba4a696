"""Altair charts of the package's tables.

A chart draws the rows of its table, thinned if there are too many. It computes only what labels
and lines need and the table lacks: areas, average precisions, prevalences and costs of curves.

Each chart is a plain Altair object to restyle. No theme is enabled and no global option is set.
Altair takes two seconds to import: every file of this folder but `options` does.
"""
