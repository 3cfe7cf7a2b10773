"""Files become a table: Parquet, CSV or JSON, one file or a folder of them, or a Hive layout.

Spark reads and writes them. The table is made when there is none, with the schema that was found; when nothing can be
written to it then, it is removed again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import click

from penstock.cli import options
from penstock.cli.output import echo, echo_json, warnings_as_notes
from penstock.cli.table_commands import open_lake
from penstock.errors import LakeError, StorageError
from penstock.progress import counted, progress

_TEXT_KINDS = {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}
_FIRST_BYTES = 16
_MOST_FOLDERS = 1_000


@click.command(short_help="Write files to a table, which is made if need be.")
@click.argument("source", type=options.PATH)
@options.table_name
@click.option("--partition-by", help="How a new table is partitioned: 'day(ts), app'.")
@click.option("--coalesce", help="Columns whose small partitions share files: app,region.")
@click.option(
    "--shred", multiple=True, help="Keys of a map that get columns of their own: headers=a,b or headers=auto."
)
@click.option("--below", help="The size below which a partition is small.  [default: 32MB]")
@click.option("--mode", type=click.Choice(["append", "overwrite"]), default="append", show_default=True,
              help="Add the rows, or put them in the place of all others.")  # fmt: skip
@click.option("--source-partition-by", default="auto", show_default=True,
              help="Partition columns of the source's directories: 'dt date, app string'.")  # fmt: skip
@options.storage
@options.lake
@options.json
def ingest(json: bool, **place: Any) -> None:
    """Write the rows of SOURCE to TABLE with Spark; the table is made when there is none.

    SOURCE is a Parquet, CSV (with a header) or JSON file, a folder of them, or a Hive layout of Parquet files.
    """
    from penstock.maps.shred_rule import parse_rules
    from penstock.spark.session.session import session
    from penstock.spark.session.tasks import progress_of_tasks
    from penstock.tables.iceberg.metadata.catalogs import clear_errors

    rule, hot = _rule(place["coalesce"], place["below"]), parse_rules(place["shred"])
    kind = kind_of(place["source"], place["storage"])
    lake = open_lake(place)
    table = _existing(lake, place, rule, hot)
    if table is None:
        _check_partitions(kind, place)
    with progress("starting Spark"):
        spark = session()
    looking = progress_of_tasks(f"looking at {place['source']}", spark)
    with warnings_as_notes(), looking, clear_errors(f"the source {place['source']}", {}):
        frame = _read(spark, kind, place)
    made = table is None
    if table is None:
        by = place["partition_by"] or ()
        table = lake.create_table(place["table"], frame.schema, by, coalesce=rule, shred=hot)
    before = table.version.snapshot_id
    try:
        with progress(f"writing to {place['table']}"):
            table.append(frame) if place["mode"] == "append" else table.overwrite(frame)
    except BaseException:
        if made:
            _take_away(lake, place["table"])
        raise
    _show({"table": place["table"], "made": made, "mode": place["mode"], **_added(table, before)}, json)


def _show(done: Mapping[str, Any], json: bool) -> None:
    if json:
        echo_json(done)
        return
    rows = f"{counted(done['rows'], 'row')} in {counted(done['files'], 'file')}"
    if done["made"]:
        echo(f"{rows} added to {done['table']}, which is new")
    elif done["mode"] == "append":
        echo(f"{rows} added to {done['table']}, which has {counted(done['total_rows'], 'row')} now")
    else:
        echo(f"{rows} written to {done['table']}, in the place of all others")


def _check_partitions(kind: str, place: Mapping[str, Any]) -> None:
    """Whether a source with a schema has the columns that a new table is partitioned by, before Spark is started."""
    from penstock.lake.create import iceberg_schema, partition_spec

    if kind in _TEXT_KINDS or not place["partition_by"]:
        return
    try:
        schema = iceberg_schema(_columns(place))
    except Exception:  # what cannot be read or known here is said when Spark reads it
        return
    partition_spec(schema, place["partition_by"])


def _columns(place: Mapping[str, Any]) -> Any:
    """The columns of a source, by one footer."""
    from penstock.formats.format_registry import format_of
    from penstock.storage.schemes import open_storage
    from penstock.tables.hive.hive_table import hive

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are said when it is read
        if not _is_flat(place):
            return hive(place["source"], place["source_partition_by"], storage=place["storage"]).schema
        storage = open_storage(place["source"], place["storage"])
        with storage.open(storage.path) as file:
            return format_of(storage.path).open(file).schema


def kind_of(source: str, storage: str | None = None) -> str:
    """The kind of a file by its name, or by its first bytes; of a folder, by the first file in it of a known kind."""
    from penstock.storage.schemes import open_storage

    place = open_storage(source, storage)
    is_file = _is_file(place)
    known = _by_name(source) or (_by_bytes(place, place.path) if is_file else next(_kinds_below(place), None))
    if known is None:
        raise StorageError(f"no Parquet, CSV or JSON file in {place.url}", hint="give a file, or a folder with files")
    return known


def _kinds_below(place: Any) -> Iterator[str]:
    """The kinds of the data files in a folder and below it."""
    from penstock.formats.format_registry import is_hidden

    waiting = [place.path]
    for _ in range(_MOST_FOLDERS):
        if not waiting:
            return
        folder = waiting.pop()
        entries = place.entries(folder)
        for entry in (entries.entry(i) for i in entries.in_order() if not is_hidden(entries.names[i])):
            path = f"{folder}/{entry.name}"
            if entry.is_directory:
                waiting.append(path)
            elif (kind := _by_name(entry.name) or _by_bytes(place, path)) is not None:
                yield kind


def _is_file(place: Any) -> bool:
    from pyarrow.fs import FileType

    try:
        kind = place.filesystem.get_file_info(place.path).type
    except OSError as error:
        raise place.trouble(place.path, error) from None
    if kind == FileType.NotFound:
        raise StorageError(f"{place.url} does not exist", hint="check the path")
    if kind == FileType.Unknown:
        raise StorageError(f"{place.url} is a pipe, socket or device", hint="give a file, or a folder with files")
    return bool(kind == FileType.File)


def _by_bytes(place: Any, path: str) -> str | None:
    """The kind of a file whose name does not tell it, as Hive's `000000_0`; None for none that is known."""
    from penstock.formats.format_registry import format_of_bytes

    with place.open(path) as file:
        known = format_of_bytes(file.read(_FIRST_BYTES))
        return None if known is None else known.name


def _by_name(name: str) -> str | None:
    from penstock.formats.format_registry import FORMATS

    kinds = {**_TEXT_KINDS, **{each.name: each.name for each in FORMATS}}
    parts = name.rstrip("/").rpartition("/")[2].lower().split(".")[1:]
    return next((kinds[part] for part in reversed(parts[-2:]) if part in kinds), None)


def _read(spark: Any, kind: str, place: Mapping[str, Any]) -> Any:
    """The source as a DataFrame; a folder of data files goes through Penstock's own scan, which knows Hive layouts."""
    from penstock.tables.hive.hive_table import hive

    source = place["source"]
    if kind == "csv":
        return spark.read.csv(source, header=True, inferSchema=True)
    if kind == "json":
        return spark.read.json(source)
    if _is_flat(place):
        return spark.read.format(kind).load(source)
    return hive(source, place["source_partition_by"], storage=place["storage"]).dataframe(spark)


def _is_flat(place: Mapping[str, Any]) -> bool:
    """Whether the source has no levels to look for: a file, a folder that is named like one, or one of files only."""
    from penstock.formats.format_registry import is_hidden
    from penstock.storage.schemes import open_storage

    if place["source_partition_by"] != "auto":
        return False
    source = open_storage(place["source"], place["storage"])
    if _by_name(place["source"]) is not None or _is_file(source):
        return True
    entries = source.entries(source.path)
    return not any(entries.entry(i).is_directory for i, name in enumerate(entries.names) if not is_hidden(name))


def _rule(columns: str | None, below: str | None) -> Any:
    from penstock.lake.layout.coalesce import Coalesce
    from penstock.maps.name_lists import read_names

    if columns is None:
        if below is not None:
            raise LakeError("--below is given without --coalesce", hint="say which columns: --coalesce app")
        return None
    return Coalesce(*read_names(columns), below=below)


def _existing(lake: Any, place: Mapping[str, Any], rule: Any, hot: Any) -> Any:
    """The table, when there is one."""
    from penstock.tables.iceberg.metadata.catalogs import clear_errors

    name = place["table"]
    if "/" in name or "." not in name.strip("."):
        raise LakeError(f"invalid table name {name!r}", hint="write namespace.name")
    with clear_errors("the catalog", {}):
        if name not in lake.tables():
            return None
    table = lake.writable_table(name)
    _check_same(table, place["partition_by"], rule, hot)
    return table


def _check_same(table: Any, partition_by: str | None, rule: Any, hot: Any) -> None:
    """What is said about a table that exists must be so."""
    from penstock.lake.create import partition_spec
    from penstock.lake.layout.table_layout import typed_rule

    metadata = table.table.metadata
    schema = table.version.columns.schema
    if partition_by is not None:
        wanted, actual = (
            [(f.source_id, str(f.transform)) for f in spec.fields]
            for spec in (partition_spec(schema, partition_by), metadata.spec())
        )
        if wanted != actual:
            fields = ", ".join(
                f"{f.transform} of {schema.find_column_name(f.source_id)}" for f in metadata.spec().fields
            )
            message = f"{table.name} exists and is partitioned by {fields or 'nothing'}, not by {partition_by}"
            raise LakeError(message, hint="leave --partition-by out, or name another table")
    if rule is not None and typed_rule(schema, rule) != table.coalesce:
        message = f"{table.name} exists and has another rule of coalescing"
        raise LakeError(message, hint="leave --coalesce out, or change the rule first: table.set_coalesce(…)")
    if hot and hot != table.shred:
        message = f"{table.name} exists and has other hot keys"
        raise LakeError(message, hint="leave --shred out, or change them first: table.set_shred(…)")


def _added(table: Any, before: int | None) -> dict[str, int]:
    """What the last snapshot added, nothing when there is no new one; and how many rows there are now."""
    snapshot = table.version.snapshot
    summary = snapshot.summary.additional_properties if snapshot is not None and snapshot.snapshot_id != before else {}
    names = {"rows": "added-records", "files": "added-data-files", "bytes": "added-files-size"}
    return {**{name: int(summary.get(key, 0)) for name, key in names.items()}, "total_rows": table.count()}


def _take_away(lake: Any, name: str) -> None:
    """Drop a table that was made for rows that could not be written, unless somebody else has written to it."""
    with suppress(Exception):  # what went wrong before is what matters
        made = lake.catalog.load_table(name)
        if made.metadata.current_snapshot() is None:
            lake.catalog.drop_table(name)
            for path in (made.metadata_location, *(entry.metadata_file for entry in made.metadata.metadata_log)):
                made.io.delete(path)
