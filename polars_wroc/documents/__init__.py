"""Documents: a list of blocks, which is written as HTML, as Markdown or for a terminal."""
