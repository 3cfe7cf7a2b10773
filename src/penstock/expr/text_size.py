"""How many bytes a function's text will have, before it is computed.

Nested calls of `replace` can make a text of a hundred characters longer than any memory, so the evaluator asks first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.kernels.physical import Numbers, numbers

# A column of text that functions compute has at most so many bytes, or `GROWTH` times those of the columns read.
MAX_TEXT_BYTES, GROWTH = 64 << 20, 8
_LONGEST_CHARACTER = 4
_JOINING = frozenset(["concat", "||"])
_PADDING = frozenset(["lpad", "rpad"])


def text_bytes(name: str, arrays: Sequence[pa.Array]) -> int:
    """An upper bound of the bytes that a function computes from these columns; 0 where they do not grow.

    >>> text_bytes("replace", [pa.array(["aaa"]), pa.array(["a"]), pa.array(["bbbb"])])
    12
    """
    if name == "replace" and len(arrays) == 3:
        return _replaced_bytes(*arrays)
    if name in _PADDING:
        return int(np.maximum(numbers(arrays[1]).astype(np.int64), 0).sum()) * _LONGEST_CHARACTER
    return sum(array.nbytes for array in arrays) if name in _JOINING else 0


def _replaced_bytes(text: pa.Array, search: pa.Array, replacement: pa.Array) -> int:
    lengths = _lengths(search)
    patterns = pc.unique(search)
    if len(patterns) == 1 and patterns[0].as_py():
        occurrences = numbers(pc.count_substring(text, patterns[0].as_py())).astype(np.int64)
    else:
        occurrences = _lengths(text) // np.maximum(lengths, 1)
    return int((_lengths(text) + occurrences * np.maximum(_lengths(replacement) - lengths, 0)).sum())


def _lengths(text: pa.Array) -> Numbers:
    return numbers(pc.binary_length(text)).astype(np.int64)
