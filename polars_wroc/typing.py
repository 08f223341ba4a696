"""Types of arguments and results, for annotations of your own functions.

Options are Literals, so that a type checker, or an editor, knows their values. `Counts` is the
result of `polars_wroc.from_counts`, `NewYorkSummary` that of `polars_wroc.new_york_summary`.
"""

import lazy_loader as _lazy_loader

# The types of typing.pyi, whose modules are in the package.
__getattr__, __dir__, __all__ = _lazy_loader.attach_stub("polars_wroc", __file__)
