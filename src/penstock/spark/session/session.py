"""Sessions: one made for Penstock, or an existing one attached.

Attaching starts a thread that answers Spark's questions, injects the planning rule once for each session's extensions,
and teaches PySpark to raise Penstock's own error where planning failed, instead of a wall of Java.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import threading
from typing import TYPE_CHECKING, Any

from penstock import errors
from penstock.errors import LakeError, MissingError, PenstockError
from penstock.formats.format_registry import ICEBERG_FORMATS
from penstock.spark.session.java_classes import call, new
from penstock.spark.session.process import start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

    from penstock.lake.lake import Lake

_LAKE = "lake"  # the name of the catalog, unless another one is chosen
_MARK = "[PENSTOCK-"
_NO_FIELD_IDS = "doesn't contain any field Ids"  # what Spark says of a file that it should read by field id
_NESTED_UUID = re.compile(r"PARQUET_TYPE_ILLEGAL\].*\(UUID\)")  # what Spark's row reader says of a list of uuids
_NO_CONDITION = re.compile(r'FILTER_NOT_BOOLEAN\] Cannot resolve "(.*?)" due.*?of type "(\w+)".*?WriteDelta', re.DOTALL)
_MISSING = re.compile(r"FAILED_READ_FILE\.FILE_NOT_EXIST\].*?reading file (.+?)\.\s+File does not exist", re.DOTALL)
_FROM_PYTHON = re.compile(r"^penstock\.[\w.]*?(\w+): (.*)$", re.MULTILINE)
_ATTACHED = "_penstock_is_attached"  # set on PySpark's object of a session
_REGISTERED_SOURCES = "runtimeDataSourceBuilders"  # of Spark's DataSourceManager
_errors: dict[str, Exception] = {}
_numbers = itertools.count(1)
_answering: dict[int, tuple[Any, threading.Thread]] = {}
_lock = threading.Lock()
_MOST_ERRORS = 1_000


def session(
    name: str = "penstock", master: str | None = None, *, lake: Lake | str | None = None, **config: str
) -> SparkSession:
    """A local Spark session, attached, quiet, with this Python for its workers.

    With a lake, or the path of its warehouse, its tables are those of the catalog `lake`, which is the current one.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    options: dict[str, Any] = {"spark.app.name": name, **quiet, **config}
    if master is not None or "spark.master" not in config:
        options["spark.master"] = master or "local[*]"
    start(options)
    spark = SparkSession.builder.config(map=options).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    _silence_errors()
    attach(spark, lake)
    if lake is not None:
        spark.catalog.setCurrentCatalog(_LAKE)
    return spark


def _silence_errors() -> None:
    """PySpark writes every error of a query to stderr as well, as thousands of characters of JSON."""
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel("CRITICAL")


def attach(spark: SparkSession, lake: Lake | str | None = None, name: str = _LAKE) -> SparkSession:
    """Attach an existing session; doing it again does nothing. On Spark Connect, tables can be written then.

    With a lake, or the path of its warehouse, its tables are those of a catalog of this name:
    `spark.sql("SELECT … FROM lake.web.events")`.
    """
    is_attached = getattr(spark, _ATTACHED, False)
    if not is_attached:
        _register_source(spark)
    if is_connect(spark):
        if lake is not None:
            raise PenstockError("Spark Connect has no JVM here to add a catalog to", hint="use a classic session")
        setattr(spark, _ATTACHED, True)
        return spark
    gateway = gateway_of(spark)
    _answer_questions(gateway)
    _raise_own_errors()
    if not is_attached:
        new(gateway, "PlanEarly$Builder").attach(spark._jsparkSession.extensions())
        setattr(spark, _ATTACHED, True)
    if lake is not None:
        from penstock.lake.lake import connect
        from penstock.spark.catalog.lakes import attach_lake

        attach_lake(spark, connect(lake) if isinstance(lake, str) else lake, name)
    return spark


def _register_source(spark: SparkSession) -> None:
    """Make `format("penstock")` known."""
    from penstock.spark.write.data_source import PenstockSource

    register(spark, PenstockSource)


def register(spark: SparkSession, source: type[DataSource]) -> None:
    """Make a data source known to a session.

    Spark's own way first starts a Python process that looks for installed sources, which takes most of a second, and
    asks the session that is active, whichever one it is told to.
    """
    if is_connect(spark):
        spark.dataSource.register(source)
        return
    from pyspark.sql.udf import _wrap_function

    assert spark._jvm is not None
    sources = spark._jvm.org.apache.spark.sql.execution.datasources.v2.python
    manager = spark._jsparkSession.sessionState().dataSourceManager()
    registered = manager.getClass().getDeclaredField(_REGISTERED_SOURCES)
    registered.setAccessible(True)
    wrapped = _wrap_function(spark.sparkContext, source)
    registered.get(manager).put(source.name().lower(), sources.UserDefinedPythonDataSource(wrapped))


def is_connect(spark: SparkSession) -> bool:
    """Whether this is a Spark Connect session, which has no JVM here to plan in."""
    return getattr(spark, "_jsparkSession", None) is None


def gateway_of(spark: SparkSession) -> Any:
    """py4j's gateway of a classic session; an error that says what to do for Spark Connect."""
    if is_connect(spark):
        hint = "give the filter explicitly: table.dataframe(spark, where=…)"
        raise PenstockError("this is a Spark Connect session, which has no JVM to plan in", hint=hint)
    return spark._sc._gateway


def _answer_questions(gateway: Any) -> None:
    """Answer what Spark asks in the JVM of a gateway, in one thread for each."""
    from penstock.spark.scan.planner import Answering

    with _lock:
        known = _answering.get(id(gateway))
        if known is None or known[0] is not gateway or not known[1].is_alive():
            thread = Answering(new(gateway, "Questions"))
            thread.start()
            _answering[id(gateway)] = gateway, thread


def remember_error(error: Exception) -> str:
    """A message that carries the error through the JVM: what it says, and a mark by which it is found again."""
    with _lock:
        number = f"{_MARK}{next(_numbers)}]"
        _errors[number] = error
        while len(_errors) > _MOST_ERRORS:
            _errors.pop(next(iter(_errors)))
    return f"{error} {number}"


def _raise_own_errors() -> None:
    from pyspark.errors.exceptions import captured

    convert = captured.convert_exception
    if getattr(convert, "knows_penstock", False):
        return

    def convert_exception(java_error: Any) -> Any:
        own = _own_error(java_error)
        return _with_table(convert(java_error)) if own is None else own

    convert_exception.knows_penstock = True  # type: ignore[attr-defined]
    captured.convert_exception = convert_exception  # type: ignore[assignment]


def _with_table(error: Any) -> Any:
    """An error of Spark's, or a clearer one: of NULL among literals Spark tells while it plans, without the table."""
    from pyspark import SparkContext

    from penstock.spark.catalog.not_null import is_null_error, null_error

    if not is_null_error(error) or SparkContext._gateway is None:
        return error
    target = call(SparkContext._gateway, "WriteTarget", "take")
    return error if target is None else null_error(target, error)


def _own_error(java_error: Any) -> Exception | None:
    cause = java_error
    for _ in range(20):
        text = str(cause.getMessage()) if cause is not None and cause.getMessage() is not None else ""
        if _MARK in text:
            return _errors.get(text[text.rindex(_MARK) :].split("]")[0] + "]")
        matches = _FROM_PYTHON.findall(text)
        if matches:
            return _again(*matches[-1])
        if _NO_FIELD_IDS in text:
            return _no_field_ids(java_error)
        if _NESTED_UUID.search(text):
            return LakeError(
                "Spark's row reader cannot read a uuid inside a list or map",
                hint="set spark.sql.parquet.enableVectorizedReader and enableNestedColumnVectorizedReader to true",
            )
        condition = _NO_CONDITION.search(text)
        if condition:
            what = f"the condition {condition[1]} is a {condition[2].lower()}"
            return LakeError(what, hint="write a condition that is true or false")
        missing = _MISSING.search(text)
        if missing:
            return _gone(missing[1])
        cause = cause.getCause() if cause is not None else None
        if cause is None:
            return None
    return None


def _again(kind: str, message: str) -> PenstockError:
    """An error that was raised in one of Spark's Python processes, of which only the text arrives."""
    made: PenstockError = getattr(errors, kind, PenstockError)(message)
    return made


def _gone(url: str) -> PenstockError | None:
    """A file that was planned and does not exist; None for files that Spark reads without Penstock."""
    from penstock.spark.scan.planner import reads

    if not reads(url):
        return None
    hint = "it was removed after the DataFrame was made; make the DataFrame again from the table"
    return MissingError(f"{url} does not exist", hint=hint)


def _no_field_ids(java_error: Any) -> PenstockError:
    """A file of an Iceberg table that has no field ids, where no name mapping says what its columns are."""
    suffixes = "|".join(each.name for each in ICEBERG_FORMATS)
    path = re.search(rf"(?:file:|s3[an]?:|/)\S+?\.(?:{suffixes})", str(java_error.getMessage()))
    message = f"{path.group() if path else 'a data file'} has no field ids, and the table has no name mapping"
    return LakeError(message, hint="set the table's property schema.name-mapping.default")
