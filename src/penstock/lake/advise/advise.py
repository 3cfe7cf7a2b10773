"""What a table's partitions look like, and what coalescing would change: from partition statistics, without any data.

The sizes of all logical partitions are known from the manifests. For each rule that is possible, they are laid out as a
writer would lay them out (`slots.py`), at the table's target file size. Files that do not say which logical partitions
they hold are counted and left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionField
from pyiceberg.table.metadata import TableMetadata

from penstock.lake.advise.advice import BANDS, Advice, Band, Opens, Option
from penstock.lake.layout.coalesce import Coalesce, as_stored
from penstock.lake.layout.grouping import stored
from penstock.lake.layout.slots import assign
from penstock.lake.layout.table_layout import Layout, Tuple, layout_of, with_rule
from penstock.lake.write.data_files import target_size
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.scan_plan import data_batches

_BELOW = 32 << 20
_TOLD = 8  # columns at the end of what `partitions()` gives
_QUANTILES = (0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1)
_WORTH, _FEW = 2, 16  # a rule is worth having when it makes half as many files, and so many fewer
_NEARLY = 0.9  # of all files that a rule can save
_WORTH_COMPACTING = 1.25


def advise(table: IcebergTable) -> Advice:
    """Look at one version of a table."""
    metadata = table.table.metadata
    layout = layout_of(metadata)
    batches = data_batches(table.version, table.sources)
    files = sum(batch.count for batch in batches)
    size = sum(pc.sum(batch.column("file_size_in_bytes")).as_py() or 0 for batch in batches)
    known = Advice(table.name, rule=layout.rule, files=files, bytes=size)
    if all(str(field.transform) == "void" for field in layout.fine.fields):
        return replace(known, advice="the table is not partitioned, so there is nothing that could share files")
    if not files:
        return replace(known, advice="the table has no files yet; ask again when it has some")
    partitions = _Partitions(table, layout)
    if not len(partitions.sizes):
        text = "no file says which logical partitions it holds; compact() writes them so that they do"
        return replace(known, advice=text, unknown_files=files)
    return _advice(known, partitions, layout, metadata)


class _Partitions:
    """The logical partitions under the spec that the table is written by."""

    def __init__(self, table: IcebergTable, layout: Layout) -> None:
        listed = table.partitions()
        names = listed.column_names[1:-_TOLD]
        own = pc.equal(listed.column(0), layout.fine.spec_id)
        self.unknown_files: int = pc.sum(listed.filter(pc.invert(own)).column(-_TOLD + 1)).as_py() or 0
        listed = listed.filter(own)
        self.files = listed.column(-_TOLD + 1).to_numpy()
        self.sizes = listed.column(-_TOLD + 4).to_numpy()
        self.target = target_size(table.table.metadata.properties)
        columns = [_values(listed, names, field, layout) for field in layout.fine.fields]
        self.tuples: list[Tuple] = list(zip(*columns, strict=True))

    def option(self, layout: Layout, now: int, total: int) -> Option:
        """The files that there would be under a layout."""
        sizes = self.sizes.tolist()
        slots = assign(layout, self.tuples, sizes, sizes, self.target)
        files = len(slots.slots) + self.unknown_files
        opens = _opens([each.slots for each in slots.assigned], files)
        return Option(layout.rule, files, total // max(1, files), opens, now / max(1, files))


def _values(listed: pa.Table, names: Sequence[str], field: PartitionField, layout: Layout) -> list[Any]:
    columns = [i for i, name in enumerate(names) if name in (field.name, f"{field.name} (spec {layout.fine.spec_id})")]
    if not columns:  # a transform that is not known has no values to show
        return [None] * listed.num_rows
    values = stored(listed.column(columns[-1] + 1).combine_chunks())
    kind = layout.schema.find_field(field.source_id).field_type
    return [as_stored(value, kind) for value in values] if str(kind) == "uuid" else values


def _advice(known: Advice, partitions: _Partitions, layout: Layout, metadata: TableMetadata) -> Advice:
    now, total = known.files, known.bytes
    present = partitions.option(layout, now, total)
    specs = metadata.partition_specs
    options = [
        present if rule == layout.rule else partitions.option(with_rule(layout, specs, rule), now, total)
        for rule in (Coalesce(*columns, below=_BELOW) for columns in _choices(layout))
    ]
    best = _best(options, present.files)
    if best is not None and best.files * _WORTH <= present.files and present.files - best.files >= _FEW:
        suggested, text = best.rule, _suggest(best, now)
    elif layout.rule is not None:
        suggested, text = layout.rule, "the rule is good as it is"
    else:
        suggested, text = None, "no rule is needed: none would save many files"
    if suggested == layout.rule and present.files * _WORTH_COMPACTING <= now:
        text += f"; compact() would bring {now:,} → {present.files:,} files"
    quantiles = np.quantile(partitions.sizes, _QUANTILES, method="inverted_cdf").tolist()
    return replace(
        known,
        advice=text,
        partitions=len(partitions.sizes),
        unknown_files=partitions.unknown_files,
        quantiles={share: int(size) for share, size in zip(_QUANTILES, quantiles, strict=True)},
        bands=tuple(_bands(partitions.sizes)),
        opens=_opens(partitions.files, now),
        compacted=present,
        options=tuple(options),
        suggested=suggested,
    )


def _opens(files: npt.ArrayLike, scan: int) -> Opens:
    counts = np.asarray(files)
    return Opens(float(counts.mean()), int(counts.max()), scan)


def _bands(sizes: npt.NDArray[np.int64]) -> list[Band]:
    edges = [0, *BANDS, np.inf]
    partitions, _ = np.histogram(sizes, edges)
    totals, _ = np.histogram(sizes, edges, weights=sizes)
    ends = zip([*BANDS, None], partitions.tolist(), totals.tolist(), strict=True)
    return [Band(below, count, int(total)) for below, count, total in ends]


def _choices(layout: Layout) -> list[tuple[str, ...]]:
    """Each column that the table is partitioned by as it is, and all of them."""
    columns = {field.field_id: field.name for field in layout.schema.fields}
    names = [columns[f.source_id] for f in layout.fine.fields
             if str(f.transform) == "identity" and f.source_id in columns]  # fmt: skip
    return [(name,) for name in names] + ([tuple(names)] if len(names) > 1 else [])


def _best(options: Sequence[Option], now: int) -> Option | None:
    """The rule with the fewest columns that saves nearly as many files as any.

    Each column in a rule makes files less alike: a query on one value opens a file with more that it does not want.
    """
    most = max((now - option.files for option in options), default=0)
    near = [option for option in options if now - option.files >= most * _NEARLY]
    return min(near, key=lambda option: (len(option.columns), option.files), default=None)


def _suggest(option: Option, now: int) -> str:
    names = ", ".join(f'"{name}"' for name in option.columns)
    return (
        f"let small partitions share files: table.set_coalesce(penstock.Coalesce({names})) and then table.compact(): "
        f"{now:,} → {option.files:,} files"
    )
