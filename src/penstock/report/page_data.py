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
from penstock.prune.plan import Plan
from penstock.report.file_sizes import distribution
from penstock.report.page_text import all_plain, cut
from penstock.report.partition_map import Map
from penstock.report.query_view import SKIP, see
from penstock.tables.description import Pieces, pieces_of_files
from penstock.tables.source import Source

_NO_ADVICE = "Advice was left out."
_NOT_LISTED = "The table has more directories than may be listed: the map shows only what this query looked at."
_LONGEST_WHERE = 2_000
_MOST_COLUMNS = 500


class Collector:
    """What a page tells of one table, query by query; what does not depend on a query is found once."""

    def __init__(self, table: Source, advice: bool = True) -> None:
        self.table, self._wants_advice = table, advice
        self._description = table.describe()
        self._once: dict[str, Any] = {}

    def refresh(self) -> None:
        """Look at the table as it is now."""
        self._description = self.table.refresh().describe()
        self._once.clear()

    def look(self, where: str | None = None, path: str | None = None) -> dict[str, Any]:
        """The data for one query; an error in it is raised as by `plan`."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            plan = self.table.plan(where, path=path)  # first, so that its time is not that of a second look
            sections = self._sections(plan)
        notes = [str(each.message) for each in caught if str(each.message) not in "; ".join(plan.report.notes)]
        sections["notes"] += list(dict.fromkeys(notes))
        sections["where"] = cut(where or "", _LONGEST_WHERE)
        return dict(all_plain(sections))

    def _sections(self, plan: Plan) -> dict[str, Any]:
        pieces = self._description.pieces
        notes = [*plan.report.notes, *([] if pieces is not None else [_NOT_LISTED])]
        if pieces is None:
            pieces = pieces_of_files([judgement.containers for judgement in plan.judgements], plan.pruner.zone)
        seen = see(plan, self._description, pieces)
        drawn = Map(pieces, seen, self._description.location)
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
            "keys": self._kept("keys", lambda: {"hot": self._description.hot_keys(pieces)}),
            "advice": self._kept("advice", self._advice),
        }

    def _about(self, pieces: Pieces) -> dict[str, Any]:
        """What there is to know of the table itself."""
        known = (pieces.rows >= 0).all()
        return {
            **self._description.to_dict(),
            "columns": [{"name": f.name, "type": type_name(f.type)} for f in self.table.schema][:_MOST_COLUMNS],
            "files": len(pieces.names),
            "partitions": len(pieces.labels),
            "bytes": int(pieces.sizes.sum()),
            "rows": int(pieces.rows.sum()) if known and len(pieces.rows) else None,
        }

    def _advice(self) -> dict[str, str]:
        return self._description.advice() if self._wants_advice else {"said": _NO_ADVICE}

    def _kept(self, name: str, make: Any) -> dict[str, Any]:
        """What is the same for every query; where it cannot be found, the page says why and shows the rest."""
        if name not in self._once:
            try:
                self._once[name] = make()
            except PenstockError as error:
                self._once[name] = {"error": str(error)}
        return dict(self._once[name])
