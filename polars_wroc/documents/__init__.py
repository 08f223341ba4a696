"""Documents: lists of blocks, written as HTML, as Markdown or for a terminal."""
