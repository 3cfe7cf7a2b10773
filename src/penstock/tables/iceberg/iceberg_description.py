"""One version of an Iceberg table described for reports and notebooks. To see all of it, all manifests are opened."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.expr.kernels.vector import Mask
from penstock.expr.sql_text import quote_name, quote_text
from penstock.expr.tree import TRUE
from penstock.maps.sidecar_columns import path_of
from penstock.prune.facts import encode
from penstock.prune.judge import Judgement, Pruner
from penstock.prune.plan_report import human_bytes
from penstock.tables.description import MOST_KEYS, Description, Field, Part, Pieces, value_texts, whole_files
from penstock.tables.iceberg.manifest.file_batch import FileBatch
from penstock.tables.iceberg.manifest.logical_values import Members, members_of
from penstock.tables.iceberg.scan.scan_plan import data_batches, judge_batches, judge_files, served_keys
from penstock.tables.source import outputs

if TYPE_CHECKING:
    from penstock.tables.iceberg.iceberg_table import IcebergTable

_TOTALS = {"rows": "total-records", "files": "total-data-files", "bytes": "total-files-size"}


class IcebergDescription(Description):
    """An Iceberg table at one snapshot, described."""

    kind = "Iceberg table"
    level = "manifest"
    no_advice = "Advice is for tables of a catalog; this one was opened by its metadata file."

    def __init__(self, table: IcebergTable) -> None:
        self._table, self._version = table, table.version
        metadata = self._version.metadata
        fields = self._version.specs[metadata.default_spec_id].fields
        shown = [str(f.term) if f.term is not None else f.name for f in fields if f.transform != "void"]
        super().__init__(table.name, str(metadata.location), shown)
        self.snapshot = self._version.snapshot_id  # None for a table without rows

    @property
    def facts(self) -> list[tuple[str, str]]:
        """With the totals that the snapshot's summary has."""
        snapshot = self._version.snapshot
        if snapshot is None:
            return [*super().facts, ("rows", "none yet")]
        totals = snapshot.summary.additional_properties if snapshot.summary else {}
        sizes = {name: int(totals[key]) for name, key in _TOTALS.items() if key in totals}
        shown = ((name, human_bytes(size) if name == "bytes" else f"{size:,}") for name, size in sizes.items())
        return [*super().facts, ("snapshot", str(self.snapshot)), *shown]

    def to_dict(self) -> dict[str, Any]:
        """With the snapshot, as text: its id is too large for a number of JavaScript."""
        return {**super().to_dict(), "snapshot": str(self.snapshot or "")}

    @cached_property
    def pieces(self) -> Pieces:
        """All data files by their logical partitions, as far as their manifests tell them."""
        version, zone, everything = self._version, self._table.context.timezone, Pruner(TRUE)
        batches = []
        for batch in self._batches:
            containers = batch.containers(version.columns, ())
            parts, others = [], np.ones(batch.count, np.bool_)
            for members in members_of(version, batch, everything.judge(containers)):
                others[members.files] = False
                parts.append(_shared_files(members, zone))
            batches.append((containers, [*parts, whole_files(containers, np.flatnonzero(others), zone)]))
        return Pieces(batches)

    def judge(self, pruner: Pruner, pieces: Pieces) -> list[Judgement]:
        """How a query would judge each file by what its manifest says of it."""
        return judge_batches(pruner, self._version, self._batches)

    def matching_pieces(self, judgements: Sequence[Judgement], pieces: Pieces) -> Mask:
        """Which pieces of kept files may match themselves: a shared file is read for some of its partitions."""
        masks = [np.array([], np.bool_)]
        for number, (batch, judgement) in enumerate(zip(self._batches, judgements, strict=True)):
            matching = members_of(self._version, batch, judgement)
            for part in (part for owner, part in pieces.parts if owner == number):
                if part.places is None:
                    masks.append(np.ones(len(part.of_file), np.bool_))
                else:
                    masks.append(np.isin(part.places, next(matching).places))
        return np.concatenate(masks)

    def hot_keys(self, pieces: Pieces) -> list[dict[str, Any]]:
        """With the number of files that serve each from its sidecar, from both, or from the map."""
        version = self._version
        keys = []
        for sidecar in version.sidecars[:MOST_KEYS]:
            path = path_of(version.stored, sidecar)
            if path is not None:
                text = f"{'.'.join(map(quote_name, path))}[{quote_text(sidecar.key)}]"
                term = next(iter(outputs([text], self._table)[1].values()))
                keys.append((term, {"column": ".".join(path), "key": sidecar.key, "mode": sidecar.mode}))
        if not keys:
            return []
        judgements = [judgement for _, judgement in judge_files(version, self._table.sources, Pruner(TRUE))]
        served = {each.key: each.to_dict() for each in served_keys(version, [term for term, _ in keys], judgements)}
        return [{**served[str(term)], **key} for term, key in keys]

    @property
    def _batches(self) -> list[FileBatch]:
        return data_batches(self._version, self._table.sources)


def _shared_files(members: Members, zone: str) -> Part:
    """The pieces of files that several partitions share."""
    fields = []
    for field, column in zip(members.spec.fields, members.values(), strict=True):
        if column is not None:
            codes, dictionary = encode(column)
            texts: list[str | None] = [*value_texts(dictionary, field.transform, zone), None]
            fields.append(Field(field.name, codes.astype(np.int64), texts))
    return Part(fields, members.of_file, members.bytes, members.rows, members.places)
