"""Types of arguments, for annotations of your own functions.

Options are Literals, so that a type checker, or an editor, knows their values.
"""

import lazy_loader as _lazy_loader

# Those of typing.pyi, whose modules are in the package.
__getattr__, __dir__, __all__ = _lazy_loader.attach_stub("polars_wroc", __file__)
