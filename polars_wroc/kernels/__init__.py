"""The compiled engine: sorts and walks over arrays, compiled by numba on first use."""
