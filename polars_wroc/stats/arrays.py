from polars_wroc.arrays import *  # noqa: D100, F403
