"""The formats for which a DataFrame of an Iceberg table has relations.

Only manifests say which formats the files of a version have, and a table of a million Parquet files is not worth
decoding for that. So there are relations for Parquet, for the format that the table writes (`write.format.default`),
and for what is known already: formats that a plan of this version has met, and those in manifests that are in memory.
A plan that meets a file of another format is an error, after which that format is known
([decision 17](../../../../docs/decisions/0017-iceberg-orc-avro.md)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import LakeError
from penstock.formats.file_format import IcebergFormat
from penstock.formats.format_registry import DEFAULT, ICEBERG_FORMATS
from penstock.prune.judge import Judgement
from penstock.tables.iceberg.iceberg_table import IcebergTable

_WRITTEN = "write.format.default"


class KnownFormats:
    """The formats that a version's files are known to have."""

    def __init__(self, table: IcebergTable) -> None:
        self._table = table
        self._lock = Lock()
        self._met: set[str] = set()

    def formats(self) -> tuple[IcebergFormat, ...]:
        """Those for which there is something to read, the default first."""
        version, sources = self._table.version, self._table.sources
        names = {DEFAULT.name, version.metadata.properties.get(_WRITTEN, DEFAULT.name).lower()}
        manifests = [m for m in sources.lists.of(version.snapshot, sources.io) if int(m.content) == 0]
        names.update(*(entries.formats for entries in sources.manifests.in_memory(manifests, sources.io)))
        with self._lock:
            names |= self._met
        return tuple(each for each in ICEBERG_FORMATS if each.name in names)

    def check(self, judgements: Sequence[Judgement], read: Set[str], refused: Mapping[str, LakeError]) -> None:
        """An error where a kept file has a format that is not read: its rows would be missing without a word."""
        for judgement in judgements:
            if judgement.containers.formats is None:
                continue
            formats = pc.utf8_lower(judgement.containers.formats.take(pa.array(judgement.kept)))
            unread = set(pc.unique(formats).to_pylist()) - read
            if unread:
                with self._lock:
                    self._met |= unread
                assert judgement.containers.names is not None
                name = min(unread)
                if name in refused:
                    raise refused[name]
                path = judgement.containers.names[int(judgement.kept[pc.index(formats, name).as_py()])]
                titles = " and ".join(each.title for each in ICEBERG_FORMATS if each.name in read)
                message = f"{path} is a file in {name}, and this DataFrame was made for {titles}"
                raise LakeError(message, hint=f"make the DataFrame again, or set {_WRITTEN} of the table to {name}")


def in_format(file_format: IcebergFormat, judgement: Judgement, kept: Any) -> Any:
    """Those of some files that have a format."""
    formats = judgement.containers.formats
    if formats is None:
        return kept if file_format is DEFAULT else kept[:0]
    own = pc.equal(pc.utf8_lower(formats.take(pa.array(kept))), file_format.name)
    return kept[own.to_numpy(zero_copy_only=False)]
