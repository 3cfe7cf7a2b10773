"""What Spark calls when it needs the files of a scan: one Python object, a question and an answer, both JSON.

A *source* answers for one relation. Sources are kept by name as long as the process lives, because a plan that Spark
has cached may ask again at any time.
"""

from __future__ import annotations

import base64
import itertools
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.predicate.types import is_decimal, is_float
from penstock.predicate.values import from_arrow
from penstock.spark.session import remember_error

File = Sequence[Any]  # path, size, time of change in milliseconds


class Source(Protocol):
    """What knows the files of one relation; two that are equal answer alike."""

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Files by partition, and a line for people, for the filters that reached the relation."""
        ...


_sources: dict[str, Source] = {}
_lock = threading.Lock()


class Planner:
    """The one object that Spark calls: a `java.util.function.Function` from a question to an answer, both JSON."""

    def apply(self, request: str) -> str:
        """Plan one scan; an error is an answer too, so that it arrives as itself and not as a broken call."""
        try:
            asked = json.loads(request)
            return json.dumps(_sources[asked["table"]].answer(asked))
        except PenstockError as error:
            return json.dumps({"error": remember_error(error)})
        except Exception as error:
            return json.dumps({"error": remember_error(PenstockError(f"planning failed: {error!r}"))})

    class Java:
        """What py4j makes of it."""

        implements = ["java.util.function.Function"]  # noqa: RUF012 (py4j's own form)


planner = Planner()


def remember(key: str, source: Source) -> str:
    """The name by which Spark asks for a source: the key, and a number where two sources of one key are not the same.

    They differ in their time zone or their limits, and each DataFrame keeps those of the table it was made from. Of
    equal ones the newest is asked: it knows the session that runs now.
    """
    with _lock:
        for number in itertools.count():
            name = f"{key} #{number}" if number else key
            if _sources.setdefault(name, source) == source:
                _sources[name] = source
                return name
    raise AssertionError("unreachable")


def as_answer(
    summary: str, partitions: list[dict[str, Any]], without_nan: Sequence[Sequence[str]] = ()
) -> dict[str, Any]:
    """What Spark is told: files by partition, a line for people, and the float columns without NaN in these files."""
    return {"summary": summary, "partitions": partitions, "withoutNan": [list(path) for path in without_nan]}


def by_partition(keys: Iterable[tuple[Any, ...]], files: Iterable[File]) -> list[dict[str, Any]]:
    """Files grouped by their partition values, as Spark is told."""
    found: dict[tuple[Any, ...], list[File]] = {}
    for key, file in zip(keys, files, strict=True):
        found.setdefault(key, []).append(file)
    return [{"values": list(key), "files": group} for key, group in found.items()]


def plain_values(values: pa.Array) -> list[Any]:
    """Values in Catalyst's internal form, as JSON can hold them exactly."""
    if is_decimal(values.type):
        return [None if v is None else str(v) for v in values.to_pylist()]
    if is_float(values.type):
        return [None if v is None else _java_float(v) for v in values.to_pylist()]
    if values.type == pa.binary():
        return [None if v is None else base64.b64encode(v).decode() for v in values.to_pylist()]
    return from_arrow(values)


def _java_float(value: float) -> str:
    if np.isnan(value):
        return "NaN"
    return repr(float(value)) if np.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
