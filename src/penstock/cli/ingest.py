"""`penstock ingest`: files become rows of a table, in one commit.

What can be known without Spark is checked before it is started: the options, the source, the table, and whether the run
was committed before. The table is made when there is none; when nothing can be written to it then, it is removed again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import options
from penstock.cli.coalesce_option import coalesce_rule
from penstock.cli.group import Predicated
from penstock.cli.ingest_source import IngestSource
from penstock.cli.ingest_target import IngestTarget
from penstock.cli.output import echo, echo_json, echo_note, warnings_as_notes, write_details
from penstock.cli.table_commands import file_options, open_lake
from penstock.errors import LakeError
from penstock.progress import counted, progress
from penstock.quantities import parse_size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.managed_table import ManagedTable
    from penstock.lake.write.write_result import WriteResult
    from penstock.spark.write.text_rows import TextRows

_MODES = ("append", "overwrite", "dynamic", "replace-where", "upsert")
_MEMORY, _LEAST_MEMORY = re.compile(r"\d+[kmgt]b?", re.IGNORECASE), "512m"  # Spark starts with no less
_MASTER = re.compile(r"local(\[(\*|[1-9]\d*)(,[1-9]\d*)?\])?|yarn|(spark|k8s)://.+")


@click.command(cls=Predicated, short_help="Write files to a table, which is made if need be.")
@click.argument("source", type=options.PATH)
@options.table_name
@click.option("--mode", type=click.Choice(_MODES), default="append", show_default=True,
              help="Add the rows, or put them in the place of others.")  # fmt: skip
@click.option("--where", help="With replace-where, what the rows replace: a predicate in Spark SQL.")
@click.option("--on", help="With upsert: the key columns, 'app, id'.")
@click.option("--merge-schema", is_flag=True, help="With append: add and widen columns of the table for the rows.")
@options.run_id
@options.branch
@click.option("--schema", help="The columns of CSV or JSON with their types: 'ts timestamp, v double'.")
@click.option(
    "--bad-rows",
    type=click.Path(dir_okay=False),
    help="A file for rows that do not fit the types; without it they are an error.",
)
@click.option("--max-bad-rows", type=click.IntRange(0), help="How many such rows are an error anyway.")
@click.option("--partition-by", help="How a new table is partitioned: 'day(ts), app'.")
@click.option("--coalesce", help="Columns whose small partitions share files: app,region.")
@click.option(
    "--shred", multiple=True, help="Keys of a map that get columns of their own: headers=a,b or headers=auto."
)
@click.option("--below", help="The size below which a partition is small.  [default: 32MB]")
@click.option("--source-partition-by", default="auto", show_default=True,
              help="Partition columns of the source's directories: 'dt date, app string'.")  # fmt: skip
@click.option("--format", help="The format of the source's files: csv.  [default: as their names or first bytes say]")
@options.file_option
@click.option("--master", help="Where Spark runs.  [default: local[*]]")
@click.option("--memory", help="The memory of Spark's driver: 4g.  [default: 1g]")
@options.timezone
@options.storage
@options.lake
@options.json
def ingest(json: bool, **args: Any) -> None:
    """Write the rows of SOURCE to TABLE with Spark; the table is made when there is none.

    SOURCE is a Parquet, ORC, Avro, CSV (with a header), JSON (an object a line) or text file, a folder of them, or a
    Hive layout.

    \b
    append         adds the rows
    overwrite      puts them in the place of all others
    dynamic        puts them in the place of all rows in the partitions that they have
    replace-where  puts them in the place of those that match --where, as all of them must
    upsert         adds them, or puts them in the place of those with the same key
    """
    _check(args)
    zone = args["timezone"] or "UTC"
    source = _source(args, zone)
    source.check()
    target = _target(args, zone)
    table = target.existing()
    earlier = _earlier(table, args["run_id"])
    if table is not None and earlier is not None:
        _show(table, earlier, None, args, json, made=False)
        return
    if table is None:
        target.check_source(source)
    elif args["where"] is not None:
        table.plan(args["where"], limit=0)  # an error in it is shown before Spark starts
    with progress("starting Spark"):
        spark = _session(args)
    with warnings_as_notes(), _rows(spark, source, table) as (frame, text):
        if text is not None:
            _look_at_bad_rows(text, args)
        table, made = (
            (table, False)
            if table is not None
            else target.create(frame.schema if source.declared is None else source.declared_columns())
        )
        try:
            with progress(f"writing to {args['table']}"):
                result = _write(table, frame, args)
        except BaseException:
            if made:
                target.take_away()
            raise
    _show(table, result, text, args, json, made=made)


def _check(args: Mapping[str, Any]) -> None:
    """What is wrong with the options alone."""
    from penstock.lake.commit.once import with_run

    for option, mode in (("where", "replace-where"), ("on", "upsert")):
        if args[option] is not None and args["mode"] != mode:
            raise LakeError(f"--{option} is given without --mode {mode}", hint=f"add --mode {mode}, or leave it out")
        if args[option] is None and args["mode"] == mode:
            example = "--where \"dt = '2026-05-17'\"" if option == "where" else "--on id"
            raise LakeError(f"--mode {mode} is given without --{option}", hint=f"add {example}")
    if args["merge_schema"] and args["mode"] != "append":
        raise LakeError(f"--merge-schema is given with --mode {args['mode']}", hint="it is for append")
    if args["max_bad_rows"] is not None and args["bad_rows"] is None:
        raise LakeError("--max-bad-rows is given without --bad-rows", hint="say where they are kept: --bad-rows FILE")
    if args["bad_rows"] is not None and not os.path.isdir(os.path.dirname(os.path.abspath(args["bad_rows"]))):
        raise LakeError(f"the folder of --bad-rows {args['bad_rows']} does not exist", hint="make it, or name another")
    memory, master = args["memory"], args["master"]
    if memory is not None and (not _MEMORY.fullmatch(memory) or parse_size(memory) < parse_size(_LEAST_MEMORY)):
        hint = f"write a whole number and a unit, {_LEAST_MEMORY} or more: 4g"
        raise LakeError(f"invalid --memory {memory!r}", hint=hint)
    if master is not None and not _MASTER.fullmatch(master):
        raise LakeError(f"invalid --master {master!r}", hint="write local[*], local[4], yarn, spark://… or k8s://…")
    with_run({}, args["run_id"])


def _declared(schema: str | None) -> Any:
    from penstock.expr.schema import as_schema

    return None if schema is None else as_schema(schema)


def _source(args: Mapping[str, Any], zone: str) -> IngestSource:
    by, declared = args["source_partition_by"], _declared(args["schema"])
    files: Any = {"format": args["format"], "options": file_options(args["option"])}
    return IngestSource(args["source"], args["storage"], by, declared, zone, **files)


def _target(args: Mapping[str, Any], zone: str) -> IngestTarget:
    from penstock.maps.shred_rule import parse_rules

    rule = coalesce_rule(args["coalesce"], args["below"])
    lake, shred = open_lake(args, zone), parse_rules(args["shred"])
    return IngestTarget(lake, args["table"], args["branch"], args["partition_by"], rule, shred)


def _earlier(table: ManagedTable | None, run_id: str | None) -> WriteResult | None:
    """What to say when the table has the run already."""
    from penstock.lake.write.write_result import WriteResult

    snapshot_id = None if table is None or run_id is None else table.committed_run(run_id)
    return None if snapshot_id is None else WriteResult(snapshot_id, already_committed=True)


def _session(args: Mapping[str, Any]) -> SparkSession:
    from penstock.spark.session.session import session

    memory = {} if args["memory"] is None else {"spark.driver.memory": args["memory"]}
    return session(master=args["master"], **memory)


@contextmanager
def _rows(
    spark: SparkSession, source: IngestSource, table: ManagedTable | None
) -> Iterator[tuple[DataFrame, TextRows | None]]:
    """The rows of a source, and what was found in one without types."""
    from penstock.spark.session.tasks import progress_of_tasks
    from penstock.tables.iceberg.metadata.catalogs import clear_errors

    if source.is_text:
        text = source.text(spark, None if table is None else table.schema)
        frame = text.rows
    else:
        text = None
        with (
            clear_errors(f"the source {source.location}", {}),
            progress_of_tasks(f"looking at {source.location}", spark),
        ):
            frame = source.frame(spark)
    try:
        yield frame, text
    finally:
        if text is not None:
            text.close()


def _look_at_bad_rows(text: TextRows, args: Mapping[str, Any]) -> None:
    """Keep rows that do not fit aside, or refuse them."""
    path, most = args["bad_rows"], args["max_bad_rows"]
    if path is None:
        if text.bad:
            text.refuse()
        return
    text.keep_bad_rows(path)
    if most is not None and text.bad > most:
        message = f"{counted(text.bad, 'row')} of {text.source} do not fit, more than --max-bad-rows {most}"
        raise LakeError(message, hint=f"they are in {path}; nothing was written")


def _write(table: ManagedTable, frame: DataFrame, args: Mapping[str, Any]) -> WriteResult:
    from penstock.maps.name_lists import read_names

    mode, run_id = args["mode"], args["run_id"]
    if mode == "append":
        return table.append(frame, merge_schema=args["merge_schema"], run_id=run_id)
    if mode == "upsert":
        return table.upsert(frame, read_names(args["on"]), run_id=run_id)
    return table.overwrite(frame, args["where"], dynamic=mode == "dynamic", run_id=run_id)


def _show(
    table: ManagedTable,
    result: WriteResult,
    text: TextRows | None,
    args: Mapping[str, Any],
    json: bool,
    *,
    made: bool,
) -> None:
    inferred = {} if text is None else {each.name: each.dataType.simpleString() for each in text.types.fields}
    inferred = {name: kind for name, kind in inferred.items() if text is not None and name in text.inferred}
    total, bad = table.count(), 0 if text is None else text.bad
    if text is not None:
        _note(text, inferred)
    if json:
        done = {"table": args["table"], "made": made, "mode": args["mode"], "run_id": args["run_id"]}
        echo_json({**done, **result.to_dict(), "total_rows": total, "bad_rows": bad, "inferred_types": inferred})
        return
    rows = f"{counted(result.rows_added, 'row')} in {counted(result.files_added, 'file')}"
    if result.already_committed:
        known = f"run {args['run_id']} was committed already by snapshot {result.snapshot_id} of {args['table']}"
        echo(f"{known}; nothing changed")
        return
    if made:
        echo(f"{rows} added to {args['table']}, which is new")
    elif args["mode"] == "append":
        echo(f"{rows} added to {args['table']}, which has {counted(total, 'row')} now")
    else:
        echo(f"{args['table']}: {result}; {counted(total, 'row')} in all")
    if result.snapshot_id is not None:
        echo(write_details(result))
    if bad and text is not None:
        echo(f"{bad:,} of {counted(text.total, 'row')} did not fit, and are kept in {args['bad_rows']}")


def _note(text: TextRows, inferred: Mapping[str, str]) -> None:
    """What is worth knowing about the columns."""
    from penstock.expr.sql_text import quote_name

    if inferred:
        columns = ", ".join(f"{quote_name(name)} {kind}" for name, kind in inferred.items())
        echo_note(f"types as found in {text.source}; to be sure, declare them: --schema '{columns}'")
    if text.unread:
        echo_note(f"columns that --schema does not name are not read: {', '.join(text.unread)}")
    if text.empty:
        echo_note(f"columns of --schema that are NULL in all rows: {', '.join(text.empty)}")
