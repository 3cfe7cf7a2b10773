"""What the cases of Iceberg tables ask of a table: the rows of a predicate, and the files read for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import penstock


def opened(root: Path, **options: Any) -> Any:
    return penstock.connect(root, **options).table("web.t")


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def check(table: Any, where: str, expected: list[int], files: int | None = None) -> None:
    """Rows and, where it is told, exactly so many files; the negation and the null test have all other rows."""
    assert ids(table.arrow(where)) == expected, where
    rest = [ids(table.arrow(text)) for text in (f"NOT ({where})", f"({where}) IS NULL")]
    assert sorted([*expected, *rest[0], *rest[1]]) == ids(table.arrow()), where
    if files is not None:
        assert len(table.plan(where).files) == files, where
