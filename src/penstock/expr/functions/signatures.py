"""Which argument types a function takes: the few shapes of signature that the functions share.

A signature answers with the types to which Spark's analyzer would implicitly cast the arguments. Where Spark
would refuse, or would cast in a way that is not certain here, the answer is None and the call stays opaque.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from penstock.expr.functions.function import Constants, Signature
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, common_type_of, is_decimal, is_integer, is_timestamp

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


def unary(
    accepts: Callable[[pa.DataType], bool],
    to: Callable[[pa.DataType], pa.DataType] | None = None,
    result: pa.DataType | None = None,
) -> SignatureOf:
    """One argument of an accepted type, cast as `to` says; without `result` that is the type of the result too."""

    def signature(types: Types, constants: Constants) -> Signature | None:
        if len(types) != 1 or not accepts(types[0]):
            return None
        argument = types[0] if to is None else to(types[0])
        return Signature((argument,), argument if result is None else result)

    return signature


def common(accepts: Callable[[Types], bool]) -> SignatureOf:
    """Arguments of any accepted types, all cast to their common type, which is that of the result."""

    def signature(types: Types, constants: Constants) -> Signature | None:
        t = common_type_of(types) if types and accepts(types) else None
        return None if t is None else Signature((t,) * len(types), t)

    return signature


def any_of(*signatures: SignatureOf) -> SignatureOf:
    """The first signature that takes the arguments."""

    def signature(types: Types, constants: Constants) -> Signature | None:
        matches = (each(types, constants) for each in signatures)
        return next((match for match in matches if match is not None), None)

    return signature


def with_constant(signature: SignatureOf, place: int, *bad: int | None) -> SignatureOf:
    """The argument at that place, if present, must be a constant, and none of these."""

    def checked(types: Types, constants: Constants) -> Signature | None:
        constant = constants[place] if len(constants) > place else (1,)
        return None if constant is None or constant[0] in bad else signature(types, constants)

    return checked


def is_time(t: pa.DataType) -> bool:
    """Whether Spark casts the type to a date or a timestamp implicitly."""
    return is_timestamp(t) or t in (DATE, STRING) or bool(pa.types.is_null(t))


def as_int(t: pa.DataType) -> bool:
    """Whether Spark casts the type to `int` implicitly."""
    return bool((is_integer(t) and t != BIGINT) or pa.types.is_null(t))


def is_text(t: pa.DataType) -> bool:
    """Whether Spark casts the type to a string implicitly; the digits of floats are Java's."""
    return is_time(t) or is_integer(t) or is_decimal(t) or t == pa.bool_()


def widen(t: pa.DataType) -> pa.DataType:
    """`bigint` for every integer type; any other type unchanged."""
    return BIGINT if is_integer(t) else t


def clock_type(t: pa.DataType) -> pa.DataType:
    """The timestamp type in which the time of day is read."""
    return TIMESTAMP_NTZ if t == TIMESTAMP_NTZ else TIMESTAMP


def _fits(t: pa.DataType, to: pa.DataType) -> bool:
    if to in (DATE, TIMESTAMP):
        return is_time(t)
    if to == INT:
        return as_int(t)
    if to == BIGINT:
        return is_integer(t) or bool(pa.types.is_null(t))
    if to == STRING:
        return is_text(t)
    if to == BINARY and t == STRING:
        return True
    return bool(t == to or pa.types.is_null(t))
