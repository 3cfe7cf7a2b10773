"""The tree that is adopted: all of its files with their partition values, as columns, and names that not all can read.

PyIceberg cuts a path at `#` and `?`, and takes line breaks and tabs out of it: such files would be others, or none.
Percent signs and spaces are part of the name for every reader, so escaped directories stay as they are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import LayoutError
from penstock.expr.tree import TRUE
from penstock.formats.parquet import PARQUET
from penstock.lake.adopt.adopted_footers import FoundFile
from penstock.lake.layout.grouping import stored
from penstock.lake.layout.table_layout import Tuple
from penstock.progress import Counted, progress
from penstock.prune.facts import Exact
from penstock.tables.hive.hive_table import HiveTable
from penstock.tables.hive.walk import Limits, check_readable

_CUT = r"[#?\x00-\x1f\x7f]"


@dataclass(frozen=True)
class AdoptedTree:
    """All files of a tree, and the values of its partition columns for each."""

    layout: HiveTable
    files: Sequence[FoundFile]
    values: Sequence[pa.Array]

    @property
    def names(self) -> list[str]:
        """The partition columns."""
        return [column.name for column in self.layout.columns]

    def partitions(self, which: Sequence[int], types: Sequence[pa.DataType]) -> list[Tuple]:
        """The partitions of some files as manifests have them; the columns are of these types in the table."""
        taken = [values.take(pa.array(which, pa.int64())) for values in self.values]
        columns = [stored(values.cast(kind)) for values, kind in zip(taken, types, strict=True)]
        return list(zip(*columns, strict=True)) if columns else [()] * len(which)


def adopted_tree(layout: HiveTable) -> AdoptedTree:
    """List a layout; all of it is adopted, so limits of listing do not hold, nor leave to pass over directories."""
    if layout.data_files.file_format is not PARQUET:
        message = f"{layout.storage.url} is {layout.data_files.file_format.title}, and only Parquet can be adopted"
        raise LayoutError(message, hint="write its rows to a table: penstock ingest")
    limits: Any = {"limits": Limits(sys.maxsize, sys.maxsize), "max_lists": sys.maxsize}
    whole = replace(layout, **limits, cache=None, on_forbidden="error")
    walk = whole.walk(TRUE)
    with progress(f"listing {layout.storage.url}", lambda: Counted(walk.lister.calls, None, "directory")):
        plan = walk.plan()
    check_readable(plan, layout.columns)
    (judgement,) = plan.judgements
    containers = judgement.containers
    assert containers.names is not None
    assert containers.sizes is not None
    _check_paths(containers.names)
    files = list(map(FoundFile, containers.names.to_pylist(), containers.sizes.to_pylist(), walk.written))
    facts = {fact.name: fact for fact in containers.facts if isinstance(fact, Exact)}
    every = np.arange(containers.count)
    return AdoptedTree(whole, files, [facts[column.name].single_values(every)[0] for column in layout.columns])


def _check_paths(urls: pa.Array) -> None:
    cut = urls.filter(pc.match_substring_regex(urls, _CUT))
    if len(cut):
        url = cut[0].as_py()
        odd = re.search(_CUT, url)
        assert odd is not None
        message = f"{url!r} has {odd[0]!r} in its path, which readers of Iceberg tables cut short"
        raise LayoutError(message, hint="rename it, or write the rows to a table: penstock ingest")
