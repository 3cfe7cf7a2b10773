"""What Spark asks when it needs the files of a scan: a question and an answer, both JSON.

A *source* answers for one relation. It is kept as long as the JVM has a plan over it, because a DataFrame, or a plan
that Spark has cached, may ask at any time; the JVM says when the last one is garbage (`Questions.java`).

Python fetches questions over its own connection to the JVM, which is authenticated. py4j's callback server would listen
on a port where whoever connects may call.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from penstock.errors import PenstockError
from penstock.expr.kernels.physical import from_arrow
from penstock.expr.types import is_decimal, is_float
from penstock.prune.plan_report import Report
from penstock.spark.scan.threads import Threads
from penstock.spark.session.session import remember_error

File = Sequence[Any]  # path, size, time of change in milliseconds


class RelationFiles(Protocol):
    """What knows the files of one relation; two that are equal answer alike."""

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Files by partition, and a line for people, for the filters that reached the relation."""
        ...

    def roots(self) -> Iterable[str]:
        """Where its files lie."""
        ...


_sources: dict[str, RelationFiles] = {}
_users: Counter[str] = Counter()  # how many relations each source has in the JVM
_lock = threading.Lock()
_FETCH_MILLIS = 10_000
_AT_ONCE = 32
_OF_CATALOG = '{"verb":'
_READS = tuple(f'{_OF_CATALOG}"{verb}"' for verb in ("open", "load", "read"))  # these leave nothing behind in a thread


def answer(request: str, catalog: Any) -> str:
    """Plan one scan, or execute a request of a catalog; an error is an answer too, so that it arrives as itself."""
    from penstock.spark.catalog.answers import error_kind

    is_of_catalog = request.startswith(_OF_CATALOG)
    try:
        question = json.loads(request)
        answers = catalog if is_of_catalog else _sources[question["table"]]
        return json.dumps(answers.answer(question))
    except PenstockError as error:
        return json.dumps({"error": remember_error(error), "kind": error_kind(error)})
    except Exception as error:  # Spark waits for an answer, whatever went wrong
        if not (is_of_catalog and isinstance(error, PySparkException)):  # one of Spark's own stays as it was raised
            error = PenstockError(f"{'the statement' if is_of_catalog else 'planning'} failed: {error!r}")
        return json.dumps({"error": remember_error(error)})


class Answering(threading.Thread):
    """Answers the questions of one JVM, many at once, until that ends."""

    def __init__(self, questions: Any) -> None:
        super().__init__(name="penstock-questions", daemon=True)
        from penstock.spark.catalog.answers import Catalog

        self._questions = questions
        self._catalog = Catalog(questions)
        self._pool = ThreadPoolExecutor(_AT_ONCE, "penstock-planning")
        self._threads = Threads("penstock-catalog")

    def run(self) -> None:
        """Fetch one question after the other."""
        with suppress(Py4JError, OSError, RuntimeError):  # the JVM, or this process, is about to end
            while True:
                text = self._questions.fetch(_FETCH_MILLIS)
                if text is not None:
                    self._dispatch(*text.split(" ", 1))
        self._threads.stop()

    def _dispatch(self, number: str, text: str) -> None:
        if number == "0":
            forget(text)
        elif text.startswith(_OF_CATALOG):
            # it may run Spark jobs, which ask questions themselves: no pool is large enough
            self._threads.run(lambda: self._answer(number, text), is_kept=text.startswith(_READS))
        else:
            self._pool.submit(self._answer, number, text)

    def _answer(self, number: str, request: str) -> None:
        with suppress(Py4JError, OSError):
            self._questions.answer(number, answer(request, self._catalog))


def remember(key: str, source: RelationFiles) -> str:
    """The name by which Spark asks for a source: the key, and a number where two sources of one key are not the same.

    They differ in their time zone or their limits, and each DataFrame keeps those of the table it was made from. Of
    equal ones the newest is asked: it knows the session that runs now. Each name is for one relation, whose end is told
    to `forget`.
    """
    with _lock:
        for number in itertools.count():
            name = f"{key} #{number}" if number else key
            if _sources.setdefault(name, source) == source:
                _sources[name] = source
                _users[name] += 1
                return name
    raise AssertionError("unreachable")


def forget(name: str) -> None:
    """One relation less has this source; without any, nobody can ask for it."""
    if name.startswith("table "):
        from penstock.spark.catalog.open_tables import handles

        handles.forget(name.removeprefix("table "))
        return
    with _lock:
        _users[name] -= 1
        if _users[name] <= 0:
            del _users[name]
            _sources.pop(name, None)


def reads(url: str) -> bool:
    """Whether a file lies where a relation has its files."""
    with _lock:
        roots = {root for source in _sources.values() for root in source.roots()}
    return any(_place(url).startswith(f"{_place(root).rstrip('/')}/") for root in roots)


def _place(url: str) -> str:
    """A URL without its scheme, which Spark spells in its own ways."""
    return re.sub(r"^\w+:/*", "/", url)


def summary_of(report: Report, kept: int) -> str:
    """A line for `EXPLAIN`, which shows some 60 characters: files, how many were skipped by what, and listings.

    >>> from penstock.prune.plan_report import Level
    >>> skipped = {"values: app = 'a'": 12, "bounds: x > 5": 1, "bounds: y > 5": 2}
    >>> summary_of(Report("", [Level("manifests", 4, 1), Level("files", 16, 1, skipped=skipped)]), 1)
    '1 of 16 files, skipped 12 by values, 3 by bounds, 1 of 4 manifests'
    """
    skipped: Counter[str] = Counter()
    for reason, count in report.files.skipped.items():
        skipped[reason.partition(":")[0]] += count
    reasons = ", ".join(f"{count} by {source}" for source, count in skipped.most_common())
    others = [f"{level.kept} of {level.total} {level.kind}" for level in report.levels if level.kind != "files"]
    lists = [f"{report.list_calls} lists"] if report.list_calls else []
    parts = [*lists, *([f"skipped {reasons}"] if reasons else []), *others]
    return ", ".join([f"{kept} of {report.files.total} files", *parts])


def as_answer(summary: str, partitions: list[dict[str, Any]], without_nan: Sequence[str] = ()) -> dict[str, Any]:
    """What Spark is told: files by partition, a line for people, and the float columns without NaN in these files."""
    return {"summary": summary, "partitions": partitions, "withoutNan": list(without_nan)}


def by_partition(keys: Iterable[tuple[Any, ...]], files: Iterable[File]) -> list[dict[str, Any]]:
    """Files grouped by their partition values, as Spark is told."""
    groups: dict[tuple[Any, ...], list[File]] = {}
    for key, file in zip(keys, files, strict=True):
        groups.setdefault(key, []).append(file)
    return [{"values": list(key), "files": group} for key, group in groups.items()]


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
