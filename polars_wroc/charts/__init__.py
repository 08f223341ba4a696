"""Altair charts of the package's tables.

A chart is a table whose columns have fixed roles (`x`, `y`, `low`, `high`, `color`, `panel`, ...),
drawn by a few drawings: curves, dots, bars and tiles. Each public function gives the columns of its
table their roles and writes the title; `plot` draws, `groups` assigns colours and panels, `look`
has colours and axes, and `options` the caller's choices.

Each chart is a plain Altair object to restyle. No theme is enabled and no global option is set.
Altair takes two seconds to import: every file of this folder but `options` does.
"""
