"""A Hive tree of Parquet files that a managed table is made of, and that is adopted again when it has grown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.types import type_name
from tests.fuzz.file_writers import write_parquet
from tests.fuzz.hive_case import PARTITIONABLE
from tests.fuzz.hive_directories import pieces
from tests.fuzz.predicates import quote
from tests.fuzz.rows import ID, Rows


@dataclass
class GrowingTree:
    """The tree, by which columns its directories are named, and the rows that are in it."""

    rng: Random
    rows: Rows
    root: Path
    zone: str
    keys: list[str] = field(default_factory=list)
    files: int = 0

    def __post_init__(self) -> None:
        candidates = [name for name, t in self.rows.types.items() if t in PARTITIONABLE]
        self.keys = self.rng.sample(candidates, min(len(candidates), self.rng.choice([0, 1, 1, 2])))

    def grow(self, ids: Iterable[int]) -> set[int]:
        """Files with some of the rows: those whose partition values a directory can say."""
        wanted, written = pa.array(sorted(ids), pa.int64()), set()
        for levels, part in pieces(self.rows, self.keys, self.zone):
            part = part.filter(pc.is_in(part.column(ID), wanted))
            if part.num_rows:
                path = self.root.joinpath(*levels, f"part-{self.files}.parquet")
                write_parquet(self.rng, path, part.drop_columns(self.keys), {})
                self.files += 1
                written |= set(part.column(ID).to_pylist())
        return written

    def adopt(self, lake: Any, name: str, **options: Any) -> Any:
        """Make a table of it, or add its new files to the table."""
        schema = self.rows.table.schema
        by = ", ".join(f"{quote(key)} {type_name(schema.field(key).type)}" for key in self.keys)
        return lake.adopt(self.root, name, by, timezone=self.zone, **options)
