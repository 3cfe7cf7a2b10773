"""How large files and partitions are: bands of a factor of four, and a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.prune.plan_report import human_bytes
from penstock.tables.description import Numbers

_FACTOR_BITS = 2
_SMALL = 1 << 20


def distribution(sizes: Numbers, read: npt.NDArray[np.bool_], noun: str) -> dict[str, Any]:
    """The bands of some sizes, with those that a query reads in each.

    >>> sizes = distribution(np.array([0, 5, 6, 70]), np.array([True, False, True, False]), "files")
    >>> [(band["from"], band["below"], band["count"], band["read"]) for band in sizes["bands"]]
    [(0, 1, 1, 1), (4, 16, 2, 1), (16, 64, 0, 0), (64, 256, 1, 0)]
    """
    bands = _bands(sizes)
    shown = []
    for band in range(int(bands.min()), int(bands.max()) + 1) if len(sizes) else ():
        inside = bands == band
        if band < 0 or inside.any() or (bands[bands >= 0] < band).any():
            low = 0 if band < 0 else 1 << (_FACTOR_BITS * band)
            numbers = {"from": low, "below": 1 << (_FACTOR_BITS * (band + 1)), "count": int(inside.sum())}
            shown.append({**numbers, "bytes": int(sizes[inside].sum()), "read": int((inside & read).sum())})
    return {"noun": noun, "count": len(sizes), "bytes": int(sizes.sum()), "bands": shown, "said": _summary(sizes, noun)}


def _bands(sizes: Numbers) -> Numbers:
    """The band of each size; -1 for those without a byte."""
    bits = np.floor(np.log2(np.maximum(sizes, 1))).astype(np.int64)
    return np.where(sizes > 0, bits // _FACTOR_BITS, -1)


def _summary(sizes: Numbers, noun: str) -> str:
    if not len(sizes):
        return f"There are no {noun}."
    half, most = (int(np.quantile(sizes, share, method="inverted_cdf")) for share in (0.5, 0.9))
    small = sizes < _SMALL
    message = f"Half of the {len(sizes):,} {noun} have at most {human_bytes(half)}, nine in ten at most "
    message += f"{human_bytes(most)}, the largest {human_bytes(int(sizes.max()))}."
    if small.any():
        share = 100 * sizes[small].sum() / max(1, sizes.sum())
        message += f" {int(small.sum()):,} are smaller than 1 MiB; they hold {share:.3g} % of the bytes."
    return message
