"""Spark in a process of its own: the class path of a JVM is fixed when it starts, and the tests' own JVM has no S3.

`ask` runs a function of a module there and brings back what it returns or raises. The function's first argument is the
session. Spark starts with the first question and ends with the process.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
_SECONDS = 500
_session: list[Any] = []


class SparkProcess:
    """One process with one session; `connect` makes it one of Spark Connect, with its server in the same process.

    `pyspark` is the folder of another PySpark than the tests'.
    """

    def __init__(
        self,
        jars: Sequence[Path] = (),
        config: Mapping[str, str] | None = None,
        *,
        master: str = "local[2]",
        connect: bool = False,
        pyspark: Path | None = None,
    ) -> None:
        config = {**(config or {}), **({"spark.jars": ",".join(map(str, jars))} if jars else {})}
        spawn = multiprocessing.get_context("spawn")
        given = (master, connect, config, pyspark)
        self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_start, initargs=given)

    def ask(
        self, question: Callable[Concatenate[Any, Given], Answer], *given: Given.args, **named: Given.kwargs
    ) -> Answer:
        """What a function answers there; an error there is raised here."""
        answer: Answer = self._pool.submit(_run, question, given, named).result(_SECONDS)
        return answer

    def close(self) -> None:
        """End the session and the process."""
        self._pool.submit(_stop).result(_SECONDS)
        self._pool.shutdown()


def _start(master: str, connect: bool, config: dict[str, str], pyspark: Path | None) -> None:
    if pyspark is not None:
        sys.path.insert(0, str(pyspark))
        os.environ["PYTHONPATH"] = str(pyspark)
        os.environ.pop("SPARK_HOME", None)
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    if connect:
        os.environ["SPARK_TESTING"] = "1"  # a server of Spark Connect takes any free port then
    # The tests' own account must come from the storage properties and from nowhere else.
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    builder = SparkSession.builder.remote(master) if connect else SparkSession.builder.master(master)
    builder = builder.config("spark.ui.enabled", "false")
    if not connect:
        builder = builder.config("spark.executor.extraJavaOptions", os.environ.get("SPARK_SUBMIT_OPTS", ""))
    for name, value in {"spark.sql.shuffle.partitions": "2", **config}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if not connect:
        session.sparkContext.setLogLevel("OFF")
    _session.append(session)


def _run(question: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    from penstock.errors import PenstockError

    try:
        return question(_session[0], *given, **named)
    except PenstockError:
        raise
    except Exception as error:  # those of py4j cannot travel
        raise RuntimeError(f"{type(error).__name__}: {error}") from None


def _stop() -> None:
    _session[0].stop()
