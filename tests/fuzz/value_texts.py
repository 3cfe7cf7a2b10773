"""Values as the text of files without types, CSV and JSON.

A value without such a text, as a day beyond the year 9999, has None. A moment is written on a clock without a zone, or
with its distance from UTC: which moment the reader takes it for, plain Spark says.
"""

from __future__ import annotations

import base64
import json
import math
from random import Random
from typing import Any

import pyarrow as pa

from tests.fuzz.literals import clock_text, date_text
from tests.fuzz.rows import physical
from tests.fuzz.values import TIMESTAMP, digits

_FIRST, _LAST = -62_135_596_800 * 10**6, 253_402_300_799_999_999  # the years 1 to 9999


def text_of(rng: Random, value: Any, t: pa.DataType) -> str | None:
    """A plain value in physical form."""
    if value is None:
        return None
    if pa.types.is_boolean(t):
        return str(value).lower()
    if pa.types.is_floating(t):
        return _float(rng, value)
    if pa.types.is_decimal(t):
        return f"{digits(value, t.scale):f}"
    if pa.types.is_binary(t):
        return base64.b64encode(value).decode()
    if pa.types.is_date(t):
        return date_text(value)
    if pa.types.is_timestamp(t):
        return _clock(rng, value, t)
    return str(value)


def json_of(rng: Random, value: Any, t: pa.DataType) -> str | None:
    """A value of any type as JSON; None where it has none."""
    if value is None:
        return rng.choice([None, "null"])
    if pa.types.is_struct(t):
        return json_object(rng, [(f.name, value[f.name], f.type) for f in t])
    if pa.types.is_map(t):
        return json_object(rng, [(key, each, t.item_type) for key, each in value])
    if pa.types.is_list(t):
        return f"[{', '.join(json_of(rng, each, t.value_type) or 'null' for each in value)}]"
    text = text_of(rng, value, t)
    is_number = pa.types.is_integer(t) or pa.types.is_decimal(t) or (pa.types.is_floating(t) and math.isfinite(value))
    if text is None or is_number or pa.types.is_boolean(t):
        return text
    return json.dumps(text, ensure_ascii=rng.random() < 0.5)


def json_object(rng: Random, fields: list[tuple[str, Any, pa.DataType]]) -> str:
    """Names with values; some that are NULL are left out."""
    texts = [(name, json_of(rng, value, t)) for name, value, t in fields]
    members = [f"{json.dumps(name)}: {text}" for name, text in texts if text is not None]
    return f"{{{', '.join(members)}}}"


def plain_values(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values in physical form, also inside of others: structs as dictionaries, maps as lists of pairs."""
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if not pa.types.is_struct(values.type):
        return physical(pa.chunked_array([values]))
    parts = [plain_values(part) for part in values.flatten()]
    names = [f.name for f in values.type]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
    return [row if valid else None for row, valid in zip(rows, values.is_valid().to_pylist(), strict=True)]


def _float(rng: Random, value: float) -> str:
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else rng.choice(["Inf", "Infinity"] if value > 0 else ["-Inf", "-Infinity"])


def _clock(rng: Random, value: int, t: pa.DataType) -> str | None:
    if not _FIRST <= value <= _LAST:
        return None
    text = clock_text(value)
    return rng.choice([f"{text}Z", f"{text.replace(' ', 'T')}+00:00", text]) if t == TIMESTAMP else text
