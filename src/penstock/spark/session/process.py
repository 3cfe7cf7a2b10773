"""Spark's own process: started without its chatter, and with a clear line where it does not start.

PySpark starts it with the error stream of this process, so its log would stand between what people asked for. Errors
are still told. PENSTOCK_SPARK_LOG names a file for all of it; commands have one, and name it where Spark failed.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.spark.session.java_runtime import find_java

if TYPE_CHECKING:
    from pyspark import SparkConf

LOG = "PENSTOCK_SPARK_LOG"
COMMAND = "_PENSTOCK_COMMAND"  # set while a command of Penstock runs
interrupted = threading.Event()  # py4j may turn an interrupt into an error of its own
_OPTIONS = "SPARK_SUBMIT_OPTS"  # Spark's own name for options of its process


def start(options: Mapping[str, str]) -> None:
    """Start Spark's process and its context, unless they are there."""
    from pyspark import SparkConf, SparkContext

    if SparkContext._gateway is None:
        SparkContext._ensure_initialized(gateway=_launch(SparkConf(loadDefaults=False).setAll(list(options.items()))))
        _interrupt_at_once()
    SparkContext.getOrCreate(SparkConf().setAll(list(options.items())))
    _interrupt_at_once()  # the context has put PySpark's own way in its place


def _launch(conf: SparkConf) -> Any:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    log = os.environ.get(LOG)
    logging.getLogger("SQLQueryContextLogger").disabled = True  # PySpark's copy, as JSON, of every error it raises
    try:
        with _not_interrupted(), _quiet_options(), open(log, "ab") if log else nullcontext() as sink:
            return launch_gateway(conf, {"stderr": sink})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError:
        raise _not_started(f"; see {log} for the full log" if log else "") from None


def _not_started(log: str) -> PenstockError:
    """Why Spark did not start: mostly it is Java."""
    java = find_java()
    if java.fix is None:
        return PenstockError(
            f"Spark did not start with {java.message}{log}", hint="'penstock doctor --spark' tries again"
        )
    return PenstockError(f"Spark did not start: {java.message}{log}", hint=java.fix)


def _interrupt_at_once() -> None:
    """In a command Ctrl-C ends it, and Spark with it; PySpark would first ask Spark, over the line that is in use."""
    if os.environ.get(COMMAND) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(*_: Any) -> None:
    interrupted.set()
    logging.disable()  # py4j tells of every answer that nobody waits for any more
    raise KeyboardInterrupt


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Ctrl-C waits for a moment: a process that is just being started would be left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextmanager
def _quiet_options() -> Iterator[None]:
    """Spark's process logs errors only, unless somebody has configured its log."""
    from importlib.resources import files

    before = os.environ.get(_OPTIONS)
    if not _is_configured(before or ""):
        quiet = f"-Dlog4j2.configurationFile={Path(str(files('penstock.spark') / 'log4j2.properties')).as_uri()}"
        os.environ[_OPTIONS] = f"{before or ''} {shlex.quote(quiet)}".strip()
    try:
        yield
    finally:
        os.environ.pop(_OPTIONS, None)
        if before is not None:
            os.environ[_OPTIONS] = before


def _is_configured(options: str) -> bool:
    from pyspark.find_spark_home import _find_spark_home

    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(_find_spark_home(), "conf")
    names = ("log4j2.properties", "log4j2.xml", "log4j2.yaml", "log4j2.yml", "log4j2.json")
    return "log4j" in options or any(os.path.exists(os.path.join(folder, name)) for name in names)


def one_line(error: Any) -> str:
    """What Spark says of a query, without its plan and the names of its error classes."""
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).strip()
    if first.startswith("[") and "] " in first:
        first = first.split("] ", 1)[1]
    message, _, place = first.partition(" SQLSTATE: ")
    where = place.partition(";")[2].strip(" ;")
    return f"{message.rstrip('. ')}{f' ({where})' if where else ''}"
