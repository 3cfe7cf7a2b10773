"""Everything that a page tells, as plain data: collected from a table and a predicate, without Spark.

The counts are those of the plan's own report, the same as in `penstock explain --json`. The map covers the whole table:
to draw it, all of it is listed once, which the plan itself never does. Properties of the storage are not in here.
"""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from typing import Any

from penstock import __version__
from penstock.errors import PenstockError
from penstock.expr.types import type_name
from penstock.lake.advise.advice import describe
from penstock.lake.managed_table import ManagedTable
from penstock.prune.plan import Plan
from penstock.report.file_sizes import distribution
from penstock.report.hot_keys import keys_of
from penstock.report.page_text import all_plain, cut
from penstock.report.partition_map import Map
from penstock.report.pieces import Pieces
from penstock.report.query_view import SKIP, see
from penstock.report.subject import planned_pieces, subject_of
from penstock.tables.hive.hive_table import HiveTable

_NO_ADVICE = "Advice was left out."
_HIVE_ADVICE = (
    "A Hive layout is not written by Penstock; penstock ingest makes a table of it whose partitions share files."
)
_ICEBERG_ADVICE = "Advice is for tables of a catalog; this one was opened by its metadata file."
_NOT_LISTED = "The table has more directories than may be listed: the map shows only what this query looked at."
_LONGEST_WHERE = 2_000
_MOST_COLUMNS = 500


class Collector:
    """What a page tells of one table, query by query; what does not depend on a query is found once."""

    def __init__(self, table: Any, advice: bool = True) -> None:
        self._subject, self._wants_advice = subject_of(table), advice
        self._once: dict[str, Any] = {}

    @property
    def table(self) -> Any:
        """The table, in the version that is looked at."""
        return self._subject.table

    def refresh(self) -> None:
        """Look at the table as it is now."""
        self._subject.refresh()
        self._once.clear()

    def look(self, where: str | None = None, path: str | None = None) -> dict[str, Any]:
        """The data for one query; an error in it is raised as by `plan`."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            plan = self.table.plan(where, path=path)  # first, so that its time is not that of a second look
            found = self._sections(plan)
        notes = [str(each.message) for each in told if str(each.message) not in "; ".join(plan.report.notes)]
        found["notes"] += list(dict.fromkeys(notes))
        found["where"] = cut(where or "", _LONGEST_WHERE)
        return dict(all_plain(found))

    def _sections(self, plan: Plan) -> dict[str, Any]:
        pieces = self._subject.pieces
        notes = [*plan.report.notes, *([] if pieces is not None else [_NOT_LISTED])]
        pieces = pieces if pieces is not None else planned_pieces(plan)
        seen = see(plan, self._subject, pieces)
        drawn = Map(pieces, seen, self._location)
        return {
            "penstock": __version__,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "table": self._about(pieces),
            "report": plan.report.to_dict(),
            "stages": [{"kind": level.kind, **level.to_dict()} for level in plan.report.levels],
            "explain": plan.explain(),
            "notes": notes,
            "map": drawn.to_dict(),
            "sizes": {
                "files": distribution(pieces.sizes, seen.verdicts != SKIP, "files"),
                "partitions": distribution(drawn.bytes, drawn.read, "partitions"),
            },
            "keys": self._kept("keys", lambda: {"hot": keys_of(self.table, _first(pieces))}),
            "advice": self._kept("advice", self._advice),
        }

    @property
    def _location(self) -> str:
        table = self.table
        return str(table.root_url if isinstance(table, HiveTable) else table.version.metadata.location)

    def _about(self, pieces: Pieces) -> dict[str, Any]:
        """What there is to know of the table itself."""
        table = self.table
        known = (pieces.rows >= 0).all()
        return {
            **(_about_hive(table) if isinstance(table, HiveTable) else _about_iceberg(table)),
            "location": self._location,
            "columns": [{"name": f.name, "type": type_name(f.type)} for f in table.schema][:_MOST_COLUMNS],
            "files": len(pieces.names),
            "partitions": len(pieces.labels),
            "bytes": int(pieces.sizes.sum()),
            "rows": int(pieces.rows.sum()) if known and len(pieces.rows) else None,
        }

    def _advice(self) -> dict[str, Any]:
        if not self._wants_advice:
            return {"said": _NO_ADVICE}
        if isinstance(self.table, ManagedTable):
            advice = self.table.advise()
            return {"said": advice.said, "text": advice.explain()}
        return {"said": _HIVE_ADVICE if isinstance(self.table, HiveTable) else _ICEBERG_ADVICE}

    def _kept(self, name: str, make: Any) -> dict[str, Any]:
        """What is the same for every query; where it cannot be found, the page says why and shows the rest."""
        if name not in self._once:
            try:
                self._once[name] = make()
            except PenstockError as error:
                self._once[name] = {"error": str(error)}
        return dict(self._once[name])


def collect(table: Any, where: str | None = None, *, path: str | None = None, advice: bool = True) -> dict[str, Any]:
    """The data of a page about one query over a table."""
    return Collector(table, advice).look(where, path)


def _about_hive(table: HiveTable) -> dict[str, Any]:
    fields = [f"{column.name} {type_name(column.type)}" for column in table.columns]
    return {"name": table.storage.url, "kind": "Hive layout", "partitioned_by": fields}


def _about_iceberg(table: Any) -> dict[str, Any]:
    version = table.version
    fields = version.specs[version.metadata.default_spec_id].fields
    told = [str(field.term) if field.term is not None else field.name for field in fields if field.transform != "void"]
    managed = isinstance(table, ManagedTable)
    rule = {"coalesce": describe(table.coalesce)} if managed and table.coalesce is not None else {}
    kind = "table of a catalog" if managed else "Iceberg table"
    return {
        "name": table.name,
        "kind": kind,
        "partitioned_by": told,
        "snapshot": str(version.snapshot_id or ""),
        **rule,
    }


def _first(pieces: Pieces) -> str | None:
    return str(pieces.names[0]) if len(pieces.names) else None
