"""`CALL lake.system.compact(table => 'web.events')` and others: maintenance as statements, each answered with rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import LakeError, name_hint
from penstock.lake.advise.advice import describe
from penstock.lake.layout.coalesce import Coalesce
from penstock.maps.name_lists import read_names
from penstock.spark.catalog.table_facts import spark_schema
from penstock.spark.catalog.versions import as_snapshot, table_name
from penstock.spark.scan.planner import plain_values

if TYPE_CHECKING:
    from penstock.lake.lake import Lake
    from penstock.lake.managed_table import ManagedTable

NAMESPACE = "system"
Values = Mapping[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a procedure: its type in Spark, and its default as SQL; None where it must be given."""

    name: str
    type: str
    default: str | None = None

    def to_dict(self) -> dict[str, str]:
        """As `LakeProcedure.java` reads it."""
        own = {"name": self.name, "type": self.type}
        return own if self.default is None else {**own, "default": self.default}


@dataclass(frozen=True)
class Procedure:
    """What CALL executes: it is given a table and values, and answers with one row."""

    description: str
    parameters: tuple[Parameter, ...]
    result: pa.Schema
    run: Callable[[ManagedTable, Values], Row]


_TABLE = Parameter("table", "string")
_FIELD = Parameter("field", "string")
_WHERE = Parameter("where", "string", "NULL")
_NAME, _SNAPSHOT = Parameter("name", "string"), Parameter("snapshot", "string", "NULL")
_OLDER = Parameter("older_than", "string", "NULL")


def _compact(table: ManagedTable, values: Values) -> Row:
    done = table.compact(values["where"])
    return done.to_dict()


def _expire(table: ManagedTable, values: Values) -> Row:
    age = {} if values["older_than"] is None else {"older_than": values["older_than"]}
    done = table.expire(**age, keep_last=values["keep_last"])
    return done.to_dict()


def _sweep(table: ManagedTable, values: Values) -> Row:
    age = {} if values["older_than"] is None else {"older_than": values["older_than"]}
    done = table.sweep(**age, dry_run=values["dry_run"])
    return done.to_dict()


def _advise(table: ManagedTable, values: Values) -> Row:
    return {"advice": str(table.advise())}


def _set_coalesce(table: ManagedTable, values: Values) -> Row:
    names = read_names(values["columns"] or "")
    table.set_coalesce(Coalesce(*names, below=values["below"]) if names else None)
    return {"rule": describe(table.coalesce)}


def _set_shred(table: ManagedTable, values: Values) -> Row:
    keys = values["keys"]
    table.set_shred({values["column"]: None if keys is None else ("auto" if keys == "auto" else read_names(keys))})
    rules = [f"{column}: {', '.join(rule.keys) or 'auto'}" for column, rule in table.shred.items()]
    return {"rules": "; ".join(rules) or "none"}


def _add_partition_field(table: ManagedTable, values: Values) -> Row:
    table.add_partition_field(_given(values, "field", "day(ts)"))
    return _partitioning(table)


def _drop_partition_field(table: ManagedTable, values: Values) -> Row:
    table.drop_partition_field(_given(values, "field", "app"))
    return _partitioning(table)


def _replace_partition_field(table: ManagedTable, values: Values) -> Row:
    table.replace_partition_field(_given(values, "field", "month(ts)"), _given(values, "new_field", "day(ts)"))
    return _partitioning(table)


def _given(values: Values, name: str, example: str) -> str:
    if values[name] is None:
        raise LakeError(f"{name} is NULL", hint=f"{name} => '{example}'")
    return str(values[name])


def _partitioning(table: ManagedTable) -> Row:
    return {"partitioned_by": ", ".join(table.partitioned_by) or "none"}


def _rollback(table: ManagedTable, values: Values) -> Row:
    return table.rollback(_snapshot(values["to"])).to_dict()


def _create_tag(table: ManagedTable, values: Values) -> Row:
    table.create_tag(values["name"], _snapshot(values["snapshot"]))
    return _created(table, values)


def _create_branch(table: ManagedTable, values: Values) -> Row:
    table.create_branch(values["name"], _snapshot(values["snapshot"]))
    return _created(table, values)


def _created(table: ManagedTable, values: Values) -> Row:
    return {"name": values["name"], "snapshot_id": table.at(values["name"]).version.snapshot_id}


def _drop_tag(table: ManagedTable, values: Values) -> Row:
    table.drop_tag(values["name"])
    return {"name": values["name"]}


def _drop_branch(table: ManagedTable, values: Values) -> Row:
    table.drop_branch(values["name"])
    return {"name": values["name"]}


def _fast_forward(table: ManagedTable, values: Values) -> Row:
    return table.fast_forward(values["branch"], values["to"]).to_dict()


def _snapshot(text: str | None) -> int | str | None:
    return None if text is None else as_snapshot(text)


def _schema(text: str) -> pa.Schema:
    kinds = {"long": pa.int64(), "text": pa.string(), "bool": pa.bool_()}
    return pa.schema([(name, kinds[kind]) for name, kind in (each.split(":") for each in text.split())])


_CREATED = _schema("name:text snapshot_id:long")
PROCEDURES = {
    "compact": Procedure(
        "Merge small files, and put every row where the rules want it.",
        (_TABLE, _WHERE),
        _schema(
            "files_before:long files_after:long rewritten:long written:long bytes_rewritten:long bytes_written:long "
            "manifests_before:long manifests_after:long"
        ),
        _compact,
    ),
    "expire": Procedure(
        "Remove old snapshots, and the files that only they needed.",
        (_TABLE, _OLDER, Parameter("keep_last", "int", "1")),
        _schema("snapshots:long files:long bytes:long"),
        _expire,
    ),
    "sweep": Procedure(
        "Remove files that no snapshot has.",
        (_TABLE, _OLDER, Parameter("dry_run", "boolean", "false")),
        _schema("files:long bytes:long dry_run:bool"),
        _sweep,
    ),
    "advise": Procedure("Say what coalescing and hot keys would change.", (_TABLE,), _schema("advice:text"), _advise),
    "set_coalesce": Procedure(
        "Set which logical partitions share files; without columns, none do.",
        (_TABLE, Parameter("columns", "string", "NULL"), Parameter("below", "string", "NULL")),
        _schema("rule:text"),
        _set_coalesce,
    ),
    "set_shred": Procedure(
        "Set which keys of a map have columns of their own; without keys, none do.",
        (_TABLE, Parameter("column", "string"), Parameter("keys", "string", "NULL")),
        _schema("rules:text"),
        _set_shred,
    ),
    "add_partition_field": Procedure(
        "Partition new files by one more field.",
        (_TABLE, _FIELD),
        _schema("partitioned_by:text"),
        _add_partition_field,
    ),
    "drop_partition_field": Procedure(
        "Do not partition new files by a field any more.",
        (_TABLE, _FIELD),
        _schema("partitioned_by:text"),
        _drop_partition_field,
    ),
    "replace_partition_field": Procedure(
        "Partition new files by another field in the place of one.",
        (_TABLE, _FIELD, Parameter("new_field", "string")),
        _schema("partitioned_by:text"),
        _replace_partition_field,
    ),
    "rollback": Procedure(
        "Make an earlier snapshot the current one.",
        (_TABLE, Parameter("to", "string")),
        _schema("previous_snapshot_id:long current_snapshot_id:long"),
        _rollback,
    ),
    "create_tag": Procedure("Name a snapshot, and keep it.", (_TABLE, _NAME, _SNAPSHOT), _CREATED, _create_tag),
    "create_branch": Procedure("Create a branch.", (_TABLE, _NAME, _SNAPSHOT), _CREATED, _create_branch),
    "drop_tag": Procedure("Drop a tag.", (_TABLE, _NAME), _schema("name:text"), _drop_tag),
    "drop_branch": Procedure("Drop a branch.", (_TABLE, _NAME), _schema("name:text"), _drop_branch),
    "fast_forward": Procedure(
        "Move a branch to the head of another one that goes on from it.",
        (_TABLE, Parameter("branch", "string"), Parameter("to", "string")),
        _schema("branch:text previous_snapshot_id:long current_snapshot_id:long"),
        _fast_forward,
    ),
}


def procedure_names(namespace: Sequence[str]) -> list[str]:
    """The procedures of a namespace."""
    return sorted(PROCEDURES) if list(namespace) == [NAMESPACE] else []


def describe_procedure(parts: Sequence[str]) -> dict[str, Any]:
    """What Spark is told of a procedure."""
    name = parts[-1].lower()
    if [part.lower() for part in parts[:-1]] != [NAMESPACE] or name not in PROCEDURES:
        raise LakeError(f"no procedure {'.'.join(parts)}", hint=name_hint(name, sorted(PROCEDURES)))
    own = PROCEDURES[name]
    parameters = [parameter.to_dict() for parameter in own.parameters]
    return {"name": name, "description": own.description, "parameters": parameters}


def call_procedure(lake: Lake, name: str, arguments: Sequence[Any]) -> dict[str, Any]:
    """Execute a procedure; its row as Spark reads it."""
    procedure = PROCEDURES[name]
    values = dict(zip((parameter.name for parameter in procedure.parameters), arguments, strict=True))
    if values["table"] is None:
        raise LakeError(f"{name} needs a table", hint=f"CALL system.{name}(table => 'namespace.name')")
    table = lake.writable_table(table_name(lake, str(values["table"]).split(".")))
    row = procedure.run(table, values)
    answer = pa.table({field.name: pa.array([row[field.name]], field.type) for field in procedure.result})
    columns = [plain_values(answer.column(name).combine_chunks()) for name in answer.column_names]
    return {"schema": spark_schema(answer.schema, {}), "rows": [list(each) for each in zip(*columns, strict=True)]}
