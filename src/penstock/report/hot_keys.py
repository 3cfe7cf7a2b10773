"""Hot keys of map columns: which there are, and in how many files each is served from its sidecar."""

from __future__ import annotations

from typing import Any

from penstock.expr.sql_text import quote_name, quote_text
from penstock.expr.tree import TRUE
from penstock.lake.layout.renames import current_properties
from penstock.maps.shredding import hot_keys
from penstock.maps.sidecar_columns import path_of
from penstock.prune.judge import Pruner
from penstock.tables.hive.hive_files import read_mapping
from penstock.tables.hive.hive_table import HiveTable
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.scan_plan import judge_files, served_keys

_MOST = 200


def keys_of(table: HiveTable | IcebergTable, first: str | None) -> list[dict[str, Any]]:
    """The hot keys of a table; those of a Hive layout are what its `first` file says."""
    if isinstance(table, IcebergTable):
        return _of_iceberg(table)
    if not table.shredded or first is None:
        return []
    found = read_mapping(table.storage, first)
    return [{"column": each.column, "key": key, "mode": each.mode} for each in found for key, _ in each.sidecars][
        :_MOST
    ]


def _of_iceberg(table: IcebergTable) -> list[dict[str, Any]]:
    """With the number of files that serve each from its sidecar, from both, or from the map."""
    version = table.version
    found = []
    for sidecar in version.sidecars[:_MOST]:
        path = path_of(version.stored, sidecar)
        if path is not None:
            text = f"{'.'.join(map(quote_name, path))}[{quote_text(sidecar.key)}]"
            term = next(iter(table.outputs([text])[1].values()))
            found.append((term, {"column": ".".join(path), "key": sidecar.key, "mode": sidecar.mode}))
    if not found:
        return []
    judgements = [judgement for _, judgement in judge_files(version, table.sources, Pruner(TRUE))]
    terms = [term for term, _ in found]
    told = {each.key: each.to_dict() for each in served_keys(version, terms, judgements)}
    wanted = {
        (column, key) for column, (_, keys) in hot_keys(current_properties(version.metadata)).items() for key in keys
    }
    return [{**told[str(term)], **each, "current": (each["column"], each["key"]) in wanted} for term, each in found]
