"""`penstock.stream_report(query)`: what a running stream has read and pruned, by what Spark tells of its progress.

Files and bytes are counted since the stream began, over all restarts; rows over the batches that Spark remembers. What
the last look at the table saw comes from Spark 4.2 on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import LakeError
from penstock.progress import counted
from penstock.prune.plan_report import human_bytes

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class SourceReport:
    """One table that a stream reads: files and bytes so far, and what the last look saw."""

    table: str
    where: str
    files: int
    bytes: int
    look: Mapping[str, Any] | None

    def __str__(self) -> str:
        lines = [
            f"{self.table} where {self.where}",
            f"  read        {counted(self.files, 'file')}, {human_bytes(self.bytes)}",
        ]
        if self.look is not None:
            seen = self.look
            behind = f"{counted(seen['pending_files'], 'file')}, {counted(seen['pending_snapshots'], 'snapshot')}"
            lines += [
                f"  partitions  {seen['partitions']:,} seen, {seen['partitions_pruned']:,} pruned, at the last look",
                f"  files       {seen['files']:,} seen, {seen['files_pruned']:,} pruned, at the last look",
                f"  behind      {behind}, {seen['lag_seconds']:.1f} s",
            ]
        return "\n".join(lines)


@dataclass(frozen=True)
class StreamReport:
    """What a stream has done."""

    query: str
    active: bool
    batch: int | None
    batches: int
    rows: int
    seconds: float | None
    sources: Sequence[SourceReport]

    def __str__(self) -> str:
        state = "running" if self.active else "stopped"
        took = "" if self.seconds is None else f", the last in {self.seconds:.2f} s"
        read = f"{counted(self.rows, 'row')} in {counted(self.batches, 'batch')}"
        head = f"{self.query} {state} at batch {self.batch}: {read}{took}"
        return "\n".join([head, *map(str, self.sources)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines."""
        return asdict(self)


def stream_report(query: StreamingQuery) -> StreamReport:
    """What a streaming query that reads Penstock's tables has done so far."""
    batches = [json.loads(progress.json) for progress in query.recentProgress]
    last = batches[-1] if batches else {"sources": []}
    sources = [report for source in last["sources"] if (report := _source(source)) is not None]
    if batches and not sources:
        hint = 'the query must read a table.stream(…), or readStream.format("penstock")'
        raise LakeError("no source of this query is Penstock's", hint=hint)
    with_rows = [progress for progress in batches if progress["numInputRows"]]
    took = last.get("durationMs", {}).get("triggerExecution")
    return StreamReport(
        query=str(query.name or query.id),
        active=bool(query.isActive),
        batch=last.get("batchId"),
        batches=len(with_rows),
        rows=sum(progress["numInputRows"] for progress in with_rows),
        seconds=None if took is None else took / 1000,
        sources=sources,
    )


def _source(source: Mapping[str, Any]) -> SourceReport | None:
    end = _json(source.get("endOffset"))
    if not isinstance(end, dict) or "penstock" not in end:
        return None
    look, total = _json(source.get("latestOffset")), end["total"]
    seen = look if isinstance(look, dict) and "partitions_pruned" in look else None
    return SourceReport(end["name"], end["where"], total["files"], total["bytes"], seen)


def _json(value: Any) -> Any:
    """An offset, which Spark may show as JSON or as a text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None
