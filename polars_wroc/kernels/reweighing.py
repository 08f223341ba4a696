"""Multiply the weights of sorted rows by random numbers, for the replicates of a bootstrap."""

from __future__ import annotations

import numpy as np

from polars_wroc.kernels.blocks import Blocks, ClassWeights, around_blocks
from polars_wroc.kernels.compiling import ONE, ZERO, U, kernel
from polars_wroc.kernels.sorting import Array, Carried, SortedRows

# The number of hashes; and how many limits are tried first, as few shares exceed all of them.
_HASHES, _FIRST_LIMITS = 2.0**64, U(4)


def reweighed(
    rows: SortedRows, blocks: Blocks, hashes: Array, limits: Array | None
) -> tuple[SortedRows, ClassWeights]:
    """Multiply the weight of each row by a random number of mean 1, which its hash gives.

    The hash is a share of 2**64. The number is how many ``limits`` the share exceeds; without
    limits it is the exponential quantile of the share.
    """
    signed, weights = np.empty(len(rows.keys)), np.zeros((len(blocks), 1, 2))
    flat = weights[:, 0]
    _reweigh(rows.signed, hashes, limits, blocks.cuts, 0, len(blocks), signed, flat)
    return rows._replace(signed=signed), around_blocks(blocks, weights)


@kernel
def _reweigh(
    signed: Array,
    hashes: Array,
    limits: Carried,
    cuts: Array,
    a: int,
    b: int,
    new: Array,
    weights: Array,
) -> None:
    """Write new weights, and add up those of both classes in each block."""
    for t in range(U(a), U(b)):
        pos, neg = 0.0, 0.0
        for i in range(cuts[t], cuts[t + ONE]):
            share = float(hashes[i]) / _HASHES
            if limits is None:
                times = -np.log(max(share, 1.0 / _HASHES))
            else:
                # The first few without a branch, since they cannot be foreseen.
                count = ZERO
                for j in range(_FIRST_LIMITS):
                    count += U(share > limits[j])
                if count == _FIRST_LIMITS:
                    for j in range(_FIRST_LIMITS, U(len(limits))):
                        count += U(share > limits[j])
                times = float(count)
            x = float(signed[i]) * times
            new[i] = x
            pos += max(x, 0.0)
            neg += max(-x, 0.0)
        weights[t, ZERO], weights[t, ONE] = pos, neg
