"""Bits and bytes: bitwise operators and shifts, hexadecimal text, and checksums.

Checksums and `hex` are of the bytes of a text in UTF-8, as Spark keeps it. Integers shorter than int are shifted as
ints.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.expr.functions.function import Constants, Function, Kernel, Signature
from penstock.expr.functions.kernel_shapes import by_row, of_integers, of_numbers
from penstock.expr.functions.signatures import BIGINT, BINARY, INT, STRING, Types, as_int, common, exactly, unary, widen
from penstock.expr.kernels.physical import Numbers
from penstock.expr.types import is_integer

_DIGESTS = {224: "sha224", 0: "sha256", 256: "sha256", 384: "sha384", 512: "sha512"}


def _shifted(types: Types, constants: Constants) -> Signature | None:
    if len(types) != 2 or not is_integer(types[0]) or not as_int(types[1]):
        return None
    t = BIGINT if types[0] == BIGINT else INT
    return Signature((t, INT), t)


def _distance(value: Numbers, distance: Numbers) -> Numbers:
    """Java uses only the lowest bits of a distance."""
    return distance.astype(value.dtype) & (value.dtype.itemsize * 8 - 1)


def _hex(value: Any) -> str:
    if isinstance(value, int):
        return f"{value & (1 << 64) - 1:X}"
    return (value.encode() if isinstance(value, str) else value).hex().upper()


def _unhex(text: str) -> bytes | None:
    """Null unless the text is hexadecimal; spaces, which Python skips, are not digits."""
    digits = text if len(text) % 2 == 0 else "0" + text
    try:
        return bytes.fromhex(digits) if text.isalnum() or not text else None
    except ValueError:
        return None


def _sha2(data: bytes, bits: int) -> str | None:
    name = _DIGESTS.get(bits)
    return None if name is None else hashlib.new(name, data, usedforsecurity=False).hexdigest()


def _digest(name: str) -> Kernel:
    return by_row(STRING, lambda data: hashlib.new(name, data, usedforsecurity=False).hexdigest())


_integers = common(lambda types: len(types) == 2 and all(map(is_integer, types)))
_countable = unary(lambda t: is_integer(t) or t == pa.bool_(), result=INT)
_hexed = unary(lambda t: is_integer(t) or t in (STRING, BINARY), widen, STRING)
_hashed = exactly([BINARY], STRING)
_bit_count = of_integers(lambda values: np.bitwise_count(values.view(np.uint64)), INT)

BYTES_FUNCTIONS = (
    Function("&", _integers, of_numbers(np.bitwise_and), catalyst=("BitwiseAnd",)),
    Function("|", _integers, of_numbers(np.bitwise_or), catalyst=("BitwiseOr",)),
    Function("^", _integers, of_numbers(np.bitwise_xor), catalyst=("BitwiseXor",)),
    Function("~", unary(is_integer), of_numbers(np.bitwise_not), catalyst=("BitwiseNot",)),
    Function("shiftleft", _shifted, of_numbers(lambda a, b: a << _distance(a, b)), catalyst=("ShiftLeft",)),
    Function("shiftright", _shifted, of_numbers(lambda a, b: a >> _distance(a, b)), catalyst=("ShiftRight",)),
    Function("bit_count", _countable, _bit_count, catalyst=("BitwiseCount",)),
    Function("hex", _hexed, by_row(STRING, _hex), catalyst=("Hex",)),
    Function("unhex", exactly([STRING], BINARY), by_row(BINARY, _unhex), catalyst=("Unhex",)),
    Function("md5", _hashed, _digest("md5"), catalyst=("Md5",)),
    Function("sha1", _hashed, _digest("sha1"), aliases=("sha",), catalyst=("Sha1",)),
    Function("sha2", exactly([BINARY, INT], STRING), by_row(STRING, _sha2), catalyst=("Sha2",)),
    Function("crc32", exactly([BINARY], BIGINT), by_row(BIGINT, zlib.crc32), catalyst=("Crc32",)),
)
