"""The arithmetic operators, with Spark's result types and ANSI failures.

Two integers meet in the wider type and fail when the result does not fit it; `/` is always a division of
doubles and fails at zero. A string beside an integer is read as a bigint, beside any other number as a double.

Decimals are computed exactly (`decimal_arithmetic`). An integer beside a decimal counts as a decimal of all its type's
digits; Spark counts a literal's digits only. Binding has done the same for an int, for other literals only the
precision differs as long as 38 digits are enough; where they are not, the call stays opaque.

The laws leave out constants that are not finite (`x + c` is NaN at the opposite infinity) and products with zero.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa

from penstock.expr.functions import decimal_arithmetic as decimals
from penstock.expr.functions.function import (
    Constants,
    Function,
    Kernel,
    Law,
    LawOf,
    Signature,
    falling,
    opposed,
    rising,
)
from penstock.expr.functions.kernel_shapes import Answer, of_integers, of_numbers
from penstock.expr.functions.signatures import BIGINT, DATE, DOUBLE, INT, STRING, SignatureOf, Types, as_int
from penstock.expr.kernels.physical import Numbers
from penstock.expr.kernels.vector import Mask, Vector
from penstock.expr.types import MAX_PRECISION, common_type, decimal_for, is_decimal, is_float, is_integer, is_numeric


def _arithmetic(decimal_result: Callable[[pa.DataType, pa.DataType], pa.DataType]) -> SignatureOf:
    def signature(types: Types, constants: Constants) -> Signature | None:
        types = _without_text(types)
        if len(types) != 2 or not all(is_numeric(t) for t in types):
            return None
        if not _exact(types):
            t = common_type(*types)
            return None if t is None else Signature((t, t), t)
        return _of_decimals(types, decimal_result)

    return signature


def _without_text(types: Types) -> Types:
    """The types with a string replaced by what Spark makes of it beside a number."""
    numbers_ = [t for t in types if t != STRING]
    if len(types) != 2 or len(numbers_) != 1 or not is_numeric(numbers_[0]):
        return types
    return (BIGINT, BIGINT) if is_integer(numbers_[0]) else (DOUBLE, DOUBLE)


def _exact(types: Types) -> bool:
    """Whether the result is a decimal: a decimal beside a double becomes one."""
    return any(is_decimal(t) for t in types) and not any(is_float(t) for t in types)


def _of_decimals(types: Types, decimal_result: Callable[[pa.DataType, pa.DataType], pa.DataType]) -> Signature | None:
    left, right = (t if is_decimal(t) else decimal_for(t) for t in types)
    result = decimal_result(left, right)
    mixed = any(is_integer(t) for t in types)
    return None if mixed and result.precision >= MAX_PRECISION else Signature((left, right), result)


def _kernel(
    compute: Callable[[Numbers, Numbers], Numbers | Answer],
    of_decimals: Callable[[pa.Array, pa.Array], Vector],
    to: pa.DataType | None = None,
) -> Kernel:
    general = of_numbers(compute, to)
    return lambda arrays, zone: of_decimals(*arrays) if is_decimal(arrays[0].type) else general(arrays, zone)


def _checked(
    operate: Callable[[Numbers, Numbers], Numbers], wraps: Callable[[Numbers, Numbers, Numbers], Mask]
) -> Callable[[Numbers, Numbers], Numbers | Answer]:
    """Integers are computed with 64 bits; `wraps` says where even those are not enough."""

    def compute(a: Numbers, b: Numbers) -> Numbers | Answer:
        if a.dtype.kind == "f":
            return operate(a, b)
        left, right = a.astype(np.int64), b.astype(np.int64)
        results = operate(left, right)
        return results, wraps(left, right, results)

    return compute


def _product_wraps(left: Numbers, right: Numbers, product: Numbers) -> Mask:
    # Dividing back must give the other factor; only MIN * -1 divides back although it wrapped.
    lowest = np.int64(-(2**63))
    wrapped = (left != 0) & (product // np.where(left == 0, 1, left) != right)
    wrapped |= ((left == -1) & (right == lowest)) | ((right == -1) & (left == lowest))
    return np.asarray(wrapped, np.bool_)


def _remainder(a: Numbers, b: Numbers) -> Answer:
    """Java's: with the sign of the dividend."""
    return np.fmod(a, np.where(b == 0, np.ones_like(b), b)), b == 0


def _modulus(a: Numbers, b: Numbers) -> Answer:
    """Never negative for a positive divisor; Java computes short types as int and lets int and long wrap."""
    if a.dtype in (np.int8, np.int16):
        a, b = a.astype(np.int32), b.astype(np.int32)
    divisor = np.where(b == 0, np.ones_like(b), b)
    rest = np.fmod(a, divisor)
    return np.where(rest < 0, np.fmod(rest + divisor, divisor), rest), b == 0


def _quotient(a: Numbers, b: Numbers) -> Answer:
    return a.astype(np.float64) / np.where(b == 0, 1.0, b), b == 0


def _integral_divide(a: Numbers, b: Numbers) -> Answer:
    """Cut towards zero."""
    failed = (b == 0) | ((a == -(2**63)) & (b == -1))
    divisor = np.where(failed, 1, b)
    return (a - np.fmod(a, divisor)) // divisor, failed


def _quotients(types: Types, constants: Constants) -> Signature | None:
    promoted = _without_text(types)
    if len(types) != 2 or not all(is_numeric(t) for t in promoted):
        return None
    if not _exact(promoted):
        return Signature(tuple(promoted) if STRING in types else (DOUBLE, DOUBLE), DOUBLE)
    # The digits of the divisor decide the scale, and those of such a constant are not known here.
    if any(is_integer(t) and t != INT and value is not None for t, value in zip(types, constants, strict=True)):
        return None
    return _of_decimals(types, decimals.quotient_type)


def _bigints(types: Types, constants: Constants) -> Signature | None:
    promoted = _without_text(types)
    return Signature((BIGINT, BIGINT), BIGINT) if len(types) == 2 and all(map(is_integer, promoted)) else None


def _numbers_only(signature: SignatureOf) -> SignatureOf:
    return lambda types, constants: signature(types, constants) if all(is_numeric(t) for t in types) else None


def _tried(kernel: Kernel) -> Kernel:
    """Null where the kernel fails, which must be exactly where Spark raises."""
    return lambda arrays, zone: Vector(kernel(arrays, zone).values)


def _or_days(numeric: SignatureOf, reversible: bool) -> SignatureOf:
    def signature(types: Types, constants: Constants) -> Signature | None:
        if len(types) == 2 and types[0] == DATE and as_int(types[1]) and is_integer(types[1]):
            return Signature((DATE, INT), DATE)
        if reversible and len(types) == 2 and types[1] == DATE and as_int(types[0]) and is_integer(types[0]):
            return Signature((INT, DATE), DATE)
        return numeric(types, constants)

    return signature


def _or_shift(kernel: Kernel, shift: Callable[[Numbers, Numbers], Numbers]) -> Kernel:
    """Days added to a date or subtracted from it; a result beyond the range of dates fails (Spark wraps around)."""
    of_dates = of_integers(shift, DATE)
    return lambda arrays, zone: (of_dates if DATE in (arrays[0].type, arrays[1].type) else kernel)(arrays, zone)


def _finite(constant: tuple[object] | None) -> int | float | Decimal | None:
    """The value of a constant that is a finite number."""
    value = None if constant is None else constant[0]
    return value if isinstance(value, int | float | Decimal) and math.isfinite(value) else None


def _beside_finite(law: LawOf) -> LawOf:
    return lambda argument, constants: None if _finite(constants[1 - argument]) is None else law(argument, constants)


def _product_law(argument: int, constants: Constants) -> Law | None:
    factor = _finite(constants[1 - argument])
    return None if not factor else (rising if factor > 0 else falling)(argument, constants)


def _quotient_law(argument: int, constants: Constants) -> Law | None:
    # In the divisor the quotient jumps from one end to the other at zero.
    return _product_law(argument, constants) if argument == 0 else None


_sums = _arithmetic(decimals.sum_type)
_products = _arithmetic(decimals.product_type)
_remainders = _arithmetic(decimals.remainder_type)
_add = _checked(operator.add, lambda left, right, total: ((left ^ total) & (right ^ total)) < 0)
_subtract = _checked(operator.sub, lambda left, right, rest: ((left ^ right) & (left ^ rest)) < 0)
_add_numbers = _kernel(_add, decimals.sums(1))
_subtract_numbers = _kernel(_subtract, decimals.sums(-1))
_times = _kernel(_checked(operator.mul, _product_wraps), decimals.product)
_rest = _kernel(_remainder, decimals.remainder(positive=False))
_divide = _kernel(_quotient, decimals.quotient, DOUBLE)
_plus, _minus = _or_shift(_add_numbers, operator.add), _or_shift(_subtract_numbers, operator.sub)

ARITHMETIC_FUNCTIONS = (
    Function("+", _or_days(_sums, reversible=True), _plus, _beside_finite(rising), catalyst=("Add",)),
    Function("-", _or_days(_sums, reversible=False), _minus, _beside_finite(opposed), catalyst=("Subtract",)),
    Function("*", _products, _times, _product_law, catalyst=("Multiply",)),
    Function("/", _quotients, _divide, _quotient_law, catalyst=("Divide",)),
    Function("div", _bigints, of_numbers(_integral_divide), _quotient_law, catalyst=("IntegralDivide",)),
    Function("%", _remainders, _rest, aliases=("mod",), catalyst=("Remainder",)),
    Function("pmod", _remainders, _kernel(_modulus, decimals.remainder(positive=True)), catalyst=("Pmod",)),
    Function("try_add", _numbers_only(_sums), _tried(_add_numbers)),
    Function("try_subtract", _numbers_only(_sums), _tried(_subtract_numbers)),
    Function("try_multiply", _numbers_only(_products), _tried(_times)),
    Function("try_divide", _numbers_only(_quotients), _tried(_divide)),
)
# Beside a decimal, an integer that is written out in the text has only as many digits as it has.
DECIMAL_OPERATORS = frozenset(name for function in ARITHMETIC_FUNCTIONS for name in (function.name, *function.aliases))
