"""The page on deleting a person, as it is written: in the end no file on the disk has anything of the person's rows.

Files are read by pyarrow, fastavro and as plain bytes, whether a snapshot leads to them or not.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import PenstockError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.managed_tables import files_below, managed_table
from tools.run_doc_blocks import run_file

PAGE = Path(__file__).parents[3] / "docs/how-to/delete-a-person.md"
PERSON = 4_242_424_242
LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "partitioned": {"partition_by": ["country"]},
    "shared files": {"partition_by": ["country"], "coalesce": ["country"]},
    "bucketed": {"partition_by": ["bucket(2, id)"]},
    "marked on read": {"partition_by": ["country"], "properties": {"write.delete.mode": "merge-on-read"}},
}


def traces(root: Path, person: int = PERSON) -> set[str]:
    """The files that have something of a person: rows, statistics, bounds."""
    number = person.to_bytes(8, "little")
    found = set()
    for path in map(Path, files_below(root)):
        if path.suffix == ".parquet":
            text = str(pq.read_metadata(path).to_dict())
            if "id" in pq.read_schema(path).names and person in pq.read_table(path)["id"].to_pylist():
                found.add(str(path))
        elif path.suffix == ".avro":
            with path.open("rb") as file:
                text = repr(list(fastavro.reader(file)))
            if repr(number)[2:-1] in text:
                found.add(str(path))
        else:
            text = path.read_bytes().decode(errors="replace")
        if "zoe@" in text or str(PERSON) in text:
            found.add(str(path))
    return found


def users(country: str, first: int) -> pa.Table:
    """Users of a country, the person among them, whose address is at the end of the file's bounds."""
    emails = ["ann@example.com", "bob@example.com", "zoe@example.com"]
    return pa.table({"id": [first, first + 1, PERSON], "email": emails, "country": [country, "DE", country]})


def test_after_the_page_no_file_has_the_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_file(PAGE)
    assert files_below(tmp_path / "privacy-lake")
    assert traces(tmp_path / "privacy-lake", 42) == set()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_file_of_any_layout_has_the_person(tmp_path: Path, layout: str) -> None:
    table = managed_table(tmp_path, "id bigint, email string, country string", **LAYOUTS[layout])
    for i, country in enumerate(("FR", "IT", "FR")):
        table.append(users(country, 10 * i))
    table.create_tag("eod")
    table.create_branch("audit")
    audit = table.at_branch("audit")
    audit.append(users("AT", 50))
    before, late = traces(tmp_path), table.at("eod")
    assert sum(path.endswith(".parquet") for path in before) >= 4
    assert any(path.endswith(".avro") for path in before), "bounds of manifests have the address"

    where = f"id = {PERSON}"
    assert (table.delete(where).rows_removed, audit.delete(where).rows_removed) == (3, 4)
    assert late.count(where) == 3, "the tag has the rows until it is dropped"
    table.drop_tag("eod")
    table.compact()
    audit.compact()
    table.expire(timedelta(0))
    assert traces(tmp_path) == set()
    for snapshot_id in table.refresh().snapshots()["snapshot_id"].to_pylist():
        assert table.at(snapshot_id).count(where) == 0
    with pytest.raises(PenstockError):
        late.arrow()
    assert (table.count(), audit.count()) == (6, 8)


def test_a_tag_a_branch_and_a_crashed_writer_keep_the_person(tmp_path: Path) -> None:
    keeps: list[tuple[str, Callable[[ManagedTable], Any], Callable[[ManagedTable], Any]]] = [
        ("tag", lambda table: table.create_tag("t"), lambda table: table.drop_tag("t")),
        ("branch", lambda table: table.create_branch("b"), lambda table: table.drop_branch("b")),
    ]
    for name, keep, let_go in keeps:
        root = tmp_path / name
        table = managed_table(root, "id bigint, email string, country string")
        table.append(users("FR", 1))
        keep(table)
        table.delete(f"id = {PERSON}")
        table.expire(timedelta(0))
        assert traces(root), name
        let_go(table)
        table.expire(timedelta(0))
        assert not traces(root), name
    orphan = next(Path(path) for path in files_below(root) if path.endswith(".parquet")).with_name("left.parquet")
    pq.write_table(users("FR", 1), orphan)
    old = orphan.stat().st_mtime - 7_200
    os.utime(orphan, (old, old))
    assert traces(root) == {str(orphan)}
    table.sweep("1 hour")
    assert not traces(root)
    assert penstock.connect(root).table("web.t").count() == 2
