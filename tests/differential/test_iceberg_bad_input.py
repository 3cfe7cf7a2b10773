"""Iceberg tables that are not there, damaged or not ours to read, and the names by which tables are found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.catalog
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyiceberg.utils.config import Config

import penstock
from penstock.errors import LakeError, PenstockError, StorageError
from tests.differential.iceberg_checks import ids, opened
from tests.fixtures.iceberg_tables import catalog_at, create, write_iceberg


class TestBadInput:
    def test_no_such_table_and_namespace_name_what_there_is(self, tmp_path: Path) -> None:
        write_iceberg(tmp_path, pa.table({"id": [1]}), [])
        for name in ("web.nosuch", "nosuch.t", "nosuch.deep.t"):
            with pytest.raises(LakeError, match=r"no table .* there are: web\.t"):
                penstock.connect(tmp_path).table(name)
        with pytest.raises(LakeError, match="invalid table name"):
            penstock.connect(tmp_path).table("t")

    def test_a_lake_that_is_only_looked_at_is_not_made(self, tmp_path: Path) -> None:
        lake = penstock.connect(tmp_path / "nowhere")
        assert lake.tables() == []
        with pytest.raises(LakeError, match="no table"):
            lake.table("web.t")
        assert not (tmp_path / "nowhere").exists()

    def test_a_catalog_that_cannot_be_reached_is_one_line_without_its_secret(self) -> None:
        properties = {"type": "rest", "uri": "http://127.0.0.1:9", "token": "very-secret-token"}
        with pytest.raises(LakeError) as caught:
            penstock.connect(catalog=properties).table("web.t")
        assert "cannot be opened" in str(caught.value)
        assert "very-secret-token" not in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("damage", ["missing", "cut", "empty", "text"])
    @pytest.mark.parametrize("what", ["manifest list", "manifest", "data file"])
    def test_a_damaged_file_is_one_clear_error_and_never_fewer_rows(
        self, tmp_path: Path, what: str, damage: str
    ) -> None:
        table = write_iceberg(tmp_path, pa.table({"id": [1, 2], "app": ["a", "b"]}), ["app"])
        snapshot = table.current_snapshot()
        place = {
            "manifest list": snapshot.manifest_list,
            "manifest": snapshot.manifests(table.io)[0].manifest_path,
            "data file": next(iter(table.scan().plan_files())).file.file_path,
        }[what]
        path = Path(place.removeprefix("file://"))
        content = path.read_bytes()
        path.unlink()
        if damage != "missing":
            path.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "text": b"hello"}[damage])
        for ask in (lambda t: t.arrow(), lambda t: t.arrow("app >= 'a'")):
            with pytest.raises(PenstockError) as caught:
                ask(opened(tmp_path))
            assert path.name in str(caught.value)
            assert "\n" not in str(caught.value)
            assert isinstance(caught.value, LakeError | StorageError)

    def test_metadata_that_is_missing_damaged_or_too_new(self, tmp_path: Path) -> None:
        table = write_iceberg(tmp_path, pa.table({"id": [1]}), [])
        path = Path(table.metadata_location.removeprefix("file://"))
        with pytest.raises(LakeError, match="does not exist"):
            penstock.iceberg(tmp_path / "nosuch.metadata.json")
        for name, text in {
            "cut": path.read_text()[:100],
            "new": json.dumps({**json.loads(path.read_text()), "format-version": 9}),
        }.items():
            other = path.with_name(f"{name}.metadata.json")
            other.write_text(text)
            with pytest.raises(LakeError) as caught:
                penstock.iceberg(other)
            assert other.name in str(caught.value)

    def test_a_column_that_is_not_there(self, tmp_path: Path) -> None:
        write_iceberg(tmp_path, pa.table({"id": [1]}), [])
        for ask in (lambda t: t.plan("nosuch = 1"), lambda t: t.arrow(columns=["nosuch"]), lambda t: t.plan(limit=-1)):
            with pytest.raises(PenstockError):
                ask(opened(tmp_path))

    def test_a_file_of_an_unknown_format_is_refused_not_left_out(self, tmp_path: Path) -> None:
        table = create(tmp_path, pa.schema({"id": pa.int64()}))
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{table.location()}/data/a.puffin",
            file_format=FileFormat.PUFFIN,
            partition=Record(),
            record_count=2,
            file_size_in_bytes=10,
            spec_id=0,
        )
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
            update.append_data_file(file)
        with pytest.raises(LakeError, match=r"a\.puffin is a file in PUFFIN"):
            opened(tmp_path).plan()


class TestNames:
    def test_a_catalog_by_object_by_properties_and_by_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_iceberg(tmp_path, pa.table({"id": [1]}), [])
        properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
        for name, value in properties.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__PENSTOCK__{name.upper()}", value)
        monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())  # which is read once, when it is imported
        for source in (catalog_at(tmp_path), properties, "penstock"):
            lake = penstock.connect(catalog=source)
            assert lake.tables() == ["web.t"]
            assert lake.table("web.t").count() == 1
            with pytest.raises(LakeError, match="need a warehouse"):
                lake.register("web.u", None)

    def test_iceberg_and_declared_tables_live_side_by_side(self, tmp_path: Path) -> None:
        write_iceberg(tmp_path, pa.table({"id": [1]}), [])
        folder = tmp_path / "hive" / "k=1"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [7]}), folder / "a.parquet")
        lake = penstock.connect(tmp_path)
        layout = penstock.hive(tmp_path / "hive", "k int")
        lake.register("web.h", layout)
        assert lake.tables() == ["web.h", "web.t"]
        assert (ids(lake.table("web.h").arrow()), ids(lake.table("web.t").arrow())) == ([7], [1])
        with pytest.raises(LakeError, match=r"web\.t is an Iceberg table"):
            lake.register("web.t", layout)
        shutil.rmtree(tmp_path / "hive")
