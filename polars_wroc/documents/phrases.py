"""Words put together as in a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def write_list(parts: Sequence[str], most: int | None = None) -> str:
    """Write parts of a sentence: ``a, b and c``; of more than ``most`` say how many there are."""
    if most is not None and len(parts) > most:
        parts = [*parts[: most - 1], f"{len(parts) - most + 1} others"]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
