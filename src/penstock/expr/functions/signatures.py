"""Which argument types a function takes: the few shapes of signature that the functions share.

A signature answers with the types to which Spark's analyzer would implicitly cast the arguments. Where Spark
would refuse, or would cast in a way that is not certain here, the answer is None and the call stays opaque.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from penstock.expr.functions.function import Constants, Signature
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, is_decimal, is_integer, is_timestamp

Types = Sequence[pa.DataType]
SignatureOf = Callable[[Types, Constants], Signature | None]

INT = pa.int32()
BIGINT = pa.int64()
DOUBLE = pa.float64()
STRING = pa.string()
BINARY = pa.binary()
DATE = pa.date32()


def exactly(arguments: Types, result: pa.DataType) -> SignatureOf:
    """Arguments of just these types, or untyped nulls."""

    def signature(types: Types, constants: Constants) -> Signature | None:
        fits = len(types) == len(arguments) and all(_fits(t, to) for t, to in zip(types, arguments, strict=True))
        return Signature(tuple(arguments), result) if fits else None

    return signature


def any_of(*signatures: SignatureOf) -> SignatureOf:
    """The first signature that takes the arguments."""

    def signature(types: Types, constants: Constants) -> Signature | None:
        found = (each(types, constants) for each in signatures)
        return next((each for each in found if each is not None), None)

    return signature


def is_time(t: pa.DataType) -> bool:
    """Whether Spark casts the type to a date or a timestamp of its own accord."""
    return is_timestamp(t) or t in (DATE, STRING) or bool(pa.types.is_null(t))


def as_int(t: pa.DataType) -> bool:
    """Whether Spark casts the type to `int` of its own accord."""
    return bool((is_integer(t) and t != BIGINT) or pa.types.is_null(t))


def is_text(t: pa.DataType) -> bool:
    """Whether Spark casts the type to a string of its own accord; the digits of floats are Java's."""
    return is_time(t) or is_integer(t) or is_decimal(t) or t == pa.bool_()


def clock_type(t: pa.DataType) -> pa.DataType:
    """The timestamp type in which the time of day is read."""
    return TIMESTAMP_NTZ if t == TIMESTAMP_NTZ else TIMESTAMP


def _fits(given: pa.DataType, to: pa.DataType) -> bool:
    if to in (DATE, TIMESTAMP):
        return is_time(given)
    if to == INT:
        return as_int(given)
    if to == BIGINT:
        return is_integer(given) or bool(pa.types.is_null(given))
    if to == STRING:
        return is_text(given)
    if to == BINARY and given == STRING:
        return True
    return bool(given == to or pa.types.is_null(given))
