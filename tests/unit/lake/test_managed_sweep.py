"""What failed jobs left is removed when it is old; a file that a snapshot needs never is."""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

import penstock
from penstock.errors import LakeError, StorageError
from penstock.lake.maintain import sweep as sweeping
from penstock.lake.managed_table import ManagedTable
from penstock.storage import file_listing as listing
from penstock.storage.path_names import Names, is_below
from penstock.tables.iceberg.metadata.catalogs import _lists
from tests.fixtures.managed_tables import bag, files_below, local, managed_table, reachable, reopened

NOW = dt.timedelta(0)
DAY = 86_400


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    """A table with shared files, a removed one in its history, and a few commits of metadata."""
    made = managed_table(tmp_path, "app string, n bigint", ["app"], coalesce=["app"])
    made.append(pa.table({"app": ["a", "b"], "n": [1, 2]}))
    made.append(pa.table({"app": ["b", "[x] #1%"], "n": [3, 4]}))
    made.delete("app = 'a'")
    return made


def home(table: ManagedTable) -> Path:
    return Path(local(table.table.metadata.location))


def left(table: ManagedTable, name: str, days: float, content: bytes = b"left") -> str:
    """A file that no snapshot has, so many days old."""
    path = home(table) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    age(path, days)
    return str(path)


def age(path: Path, days: float) -> None:
    moment = time.time() - days * DAY
    os.utime(path, (moment, moment))


def age_all(root: Path, days: float) -> None:
    for path in files_below(root):
        age(Path(path), days)


def test_old_leftovers_go_young_ones_and_live_files_stay(table: ManagedTable, tmp_path: Path) -> None:
    live, rows = files_below(tmp_path), bag(table.arrow())
    age_all(tmp_path, 30)
    old = {left(table, "data/app=a/left.parquet", 4), left(table, "metadata/left-m0.avro", 4, b"12345678")}
    old.add(left(table, "metadata/00009-left.metadata.json", 4, b"{}"))
    old.add(left(table, "metadata/00009-left.gz.metadata.json", 4, b"cut"))
    young = {left(table, "data/app=a/young.parquet", 2), left(table, "metadata/young-m0.avro", 0)}
    told = table.sweep(dry_run=True)
    assert files_below(tmp_path) == live | old | young
    done = table.sweep()
    assert (done.files, done.bytes, done.dry_run) == (4, 4 + 8 + 2 + 3, False)
    assert {local(path) for path in done.paths} == {local(path) for path in told.paths} == old
    assert (told.files, told.bytes, told.dry_run) == (4, 17, True)
    assert files_below(tmp_path) == live | young
    assert bag(table.arrow()) == bag(reopened(tmp_path).arrow()) == rows
    assert [reopened(tmp_path).at(s.snapshot_id).count() for s in table.table.metadata.snapshots] == [2, 4, 3]
    assert table.sweep().files == 0


def test_what_a_job_that_was_killed_left_is_removed(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.lake.commit import commit

    before, rows = files_below(tmp_path), bag(table.arrow())

    def killed(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(commit, "update", killed)
        with pytest.raises(KeyboardInterrupt):
            table.append(pa.table({"app": ["c"], "n": [9]}))
    leftovers = files_below(tmp_path) - before
    assert any(path.endswith(".parquet") for path in leftovers)
    assert table.sweep("1 hour").files == 0
    done = table.sweep(NOW, force=True)
    assert {local(path) for path in done.paths} == leftovers
    assert files_below(tmp_path) == before
    assert bag(table.arrow()) == rows


def test_every_way_to_keep_a_file_counts(table: ManagedTable, tmp_path: Path) -> None:
    first = table.table.metadata.snapshots[0].snapshot_id
    table.table.manage_snapshots().create_tag(first, "first").commit()
    table.refresh()
    age_all(tmp_path, 30)
    assert len(table.table.metadata.metadata_log) >= 4
    assert table.sweep().files == 0
    assert reachable(table) == files_below(tmp_path)


def test_metadata_files_beyond_the_log_are_swept(tmp_path: Path) -> None:
    kept = {"write.metadata.previous-versions-max": "2"}
    table = managed_table(tmp_path, "n bigint", properties=kept)
    for i in range(5):
        table.append(pa.table({"n": [i]}))
    age_all(tmp_path, 30)
    before = files_below(tmp_path)
    assert table.sweep().files == 3  # six were written; one is current, two are in the log
    assert {Path(path).suffixes[-2:] == [".metadata", ".json"] for path in before - files_below(tmp_path)} == {True}
    assert reopened(tmp_path).count() == 5


@pytest.mark.parametrize("given", ["59 minutes", dt.timedelta(minutes=1), "0 s", dt.datetime.now(dt.UTC)])
def test_an_age_at_which_writers_may_still_run_is_an_error(table: ManagedTable, given: Any) -> None:
    with pytest.raises(LakeError, match="not safe: writers that are running have files that no snapshot has yet"):
        table.sweep(given)


def test_empty_directories_go_with_their_files(table: ManagedTable, tmp_path: Path) -> None:
    left(table, "data/app=gone/x=1/left.parquet", 4)
    left(table, "data/app=half/left.parquet", 4)
    kept = Path(left(table, "data/app=half/young.parquet", 0))
    for folder in ("data/app=empty/deep", "data/app=new"):
        (home(table) / folder).mkdir(parents=True)
    for folder in home(table).rglob("*"):
        if folder.is_dir() and folder.name != "app=new":
            age(folder, 10)
    assert table.sweep().files == 2
    assert not (home(table) / "data" / "app=gone").exists()
    assert not (home(table) / "data" / "app=empty").exists()
    assert (home(table) / "data" / "app=new").exists()
    assert kept.exists()
    assert table.count() == 3


def test_what_other_programs_keep_below_the_table_is_not_touched(table: ManagedTable) -> None:
    kept = [left(table, name, 30) for name in ("_checkpoints/0", "data/.hidden/x", "metadata/version-hint.text")]
    gone = left(table, "data/_app=1/left.parquet", 30)
    assert [local(path) for path in table.sweep().paths] == [gone]
    assert all(Path(path).exists() for path in kept)


def test_links_to_directories_are_not_followed(table: ManagedTable, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("not ours")
    age(elsewhere / "precious", 30)
    (home(table) / "data" / "link").symlink_to(elsewhere)
    assert table.sweep().files == 0
    assert (elsewhere / "precious").exists()


def test_a_table_behind_a_link_is_the_same_table(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    table = managed_table(tmp_path / "link", "n bigint")
    table.append(pa.table({"n": [1]}))
    age_all(tmp_path / "real", 30)
    moved = penstock.connect(tmp_path / "link").table("web.t")
    assert moved.sweep().files == 0
    assert moved.count() == 1


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "{}"])
def test_paths_are_the_same_however_they_are_written(table: ManagedTable, tmp_path: Path, form: str) -> None:
    place = Path(local(table.table.metadata_location))
    metadata = json.loads(place.read_text())
    for snapshot in metadata["snapshots"]:
        snapshot["manifest-list"] = form.format(local(snapshot["manifest-list"]))
    metadata["location"] = form.format(local(metadata["location"]))
    place.write_text(json.dumps(metadata))
    age_all(tmp_path, 30)
    gone = left(table, "data/left.parquet", 30)
    again = reopened(tmp_path)
    assert [local(path) for path in again.sweep().paths] == [gone]
    assert again.count() == 3


def test_normal_names() -> None:
    names = Names()
    assert names.of("s3a://b/k//x%20") == names.of("s3n://b/k//x%20") == names.of("s3://b/k//x%20") == "s3://b/k//x%20"
    assert names.of("s3://b/k") != names.of("s3://B/k")
    assert names.folder("s3a://b/t/") == "s3://b/t"
    assert not is_below("s3://b/table2/x", "s3://b/table")
    assert names.of("/no/such/../x") == names.of("file:/no/x")
    assert names.of("file://localhost/x/y") == names.of("/x/y")
    assert names.of("gs://b/k") == "gs://b/k"


def test_a_live_file_that_was_not_listed_stops_everything(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    age_all(tmp_path, 30)
    left(table, "data/left.parquet", 30)
    before = files_below(tmp_path)
    listed = listing.list_folders

    def differently(*given: Any) -> Any:
        found = listed(*given)
        return found._replace(files=[file._replace(name=file.name.replace("/data/", "/DATA/")) for file in found.files])

    with monkeypatch.context() as patch:
        patch.setattr(sweeping, "list_folders", differently)
        with pytest.raises(
            StorageError, match=r"3 files that the table needs were not found in its folders.*nothing was"
        ):
            table.sweep()
    assert files_below(tmp_path) == before
    Path(local(next(iter(table.plan().files)).path)).unlink()
    with pytest.raises(StorageError, match="1 files that the table needs were not found"):
        table.sweep()


@pytest.mark.parametrize("do", [lambda t: t.append(pa.table({"app": ["z"], "n": [7]})), lambda t: t.delete("n = 2")])
def test_commits_during_the_listing_are_safe(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, do: Callable[[ManagedTable], None]
) -> None:
    other, listed = reopened(tmp_path), listing.list_folders

    def meanwhile(*given: Any) -> Any:
        do(other)
        found = listed(*given)
        do(other)
        return found

    monkeypatch.setattr(sweeping, "list_folders", meanwhile)
    assert table.sweep(NOW, force=True).files == 0
    assert bag(table.arrow()) == bag(reopened(tmp_path).arrow()) == bag(other.arrow())
    assert reachable(table) <= files_below(tmp_path)


def test_folders_outside_the_location_are_swept_too(tmp_path: Path) -> None:
    places = {"write.data.path": f"file://{tmp_path}/elsewhere/d", "write.metadata.path": f"{tmp_path}/elsewhere/m"}
    table = managed_table(tmp_path, "n bigint", properties=places)
    table.append(pa.table({"n": [1, 2]}))
    age_all(tmp_path, 30)
    paths = [tmp_path / "elsewhere" / "d" / "left.parquet", tmp_path / "elsewhere" / "m" / "left.avro"]
    for path in paths:
        path.write_text("left")
        age(path, 30)
    assert {local(path) for path in table.sweep().paths} == {str(path) for path in paths}
    assert reopened(tmp_path).count() == 2


def test_a_folder_that_two_tables_share_is_not_swept(tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path)
    shared = {"write.data.path": f"{tmp_path}/shared"}
    tables = [lake.create_table(f"web.t{i}", "n bigint", properties=shared) for i in range(2)]
    for table in tables:
        table.append(pa.table({"n": [1]}))
    age_all(tmp_path, 30)
    before = files_below(tmp_path)
    with pytest.raises(LakeError, match=r"/shared belongs to web\.t1, whose files cannot be told"):
        tables[0].sweep()
    assert files_below(tmp_path) == before


def test_a_table_that_only_another_catalog_knows_is_not_swept(table: ManagedTable, tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path)
    inside = lake.catalog.create_table(
        "web.inner", pa.schema({"n": pa.int64()}), location=f"{table.table.metadata.location}/data/inner"
    )
    inside.append(pa.table({"n": [1]}))
    lake.catalog.drop_table("web.inner")
    age_all(tmp_path, 30)
    before = files_below(tmp_path)
    with pytest.raises(LakeError, match=r"\.metadata\.json belongs to another table"):
        table.sweep()
    assert files_below(tmp_path) == before


class TestOthers:
    """Files below a table's location that others of the lake need are never removed."""

    def swept(self, table: ManagedTable, tmp_path: Path) -> None:
        """Sweep after a month: one leftover goes, everything else stays."""
        gone = left(table, "data/app=a/left.parquet", 30)
        age_all(tmp_path, 30)
        for folder in tmp_path.rglob("*"):
            if folder.is_dir():
                age(folder, 30)
        before = set(map(str, tmp_path.rglob("*")))
        assert [local(path) for path in table.sweep(dry_run=True).paths] == [gone]
        assert [local(path) for path in table.sweep().paths] == [gone]
        assert before - set(map(str, tmp_path.rglob("*"))) <= {gone, str(Path(gone).parent)}

    @pytest.mark.parametrize("namespace", ["web", "deep.down.below"])
    def test_a_table_below_another(self, table: ManagedTable, tmp_path: Path, namespace: str) -> None:
        catalog = penstock.connect(tmp_path).catalog
        for depth in range(1, namespace.count(".") + 2):
            catalog.create_namespace_if_not_exists(".".join(namespace.split(".")[:depth]))
        place = f"{table.table.metadata.location}/data/inner"
        inside = catalog.create_table(f"{namespace}.inner", pa.schema({"n": pa.int64()}), location=place)
        inside.append(pa.table({"n": [1]}))
        Path(local(place), "data", "half-written.parquet").write_text("half")
        self.swept(table, tmp_path)
        assert inside.refresh().scan().to_arrow().num_rows == 1

    @pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}"])
    def test_the_data_path_of_another_table(self, table: ManagedTable, tmp_path: Path, form: str) -> None:
        below = {"write.data.path": form.format(home(table) / "archive")}
        other = penstock.connect(tmp_path).create_table("web.other", "n bigint", properties=below)
        other.append(pa.table({"n": [1, 2]}))
        other.overwrite(pa.table({"n": [3]}))
        self.swept(table, tmp_path)
        assert other.arrow()["n"].to_pylist() == [3]
        assert other.at(other.table.metadata.snapshots[0].snapshot_id).count() == 2

    def test_a_declared_layout(self, table: ManagedTable, tmp_path: Path) -> None:
        root = home(table) / "exports"
        for app in "ab":
            (root / f"app={app}").mkdir(parents=True)
        pq.write_table(pa.table({"n": [1]}), root / "app=a" / "x.parquet")
        lake = penstock.connect(tmp_path)
        layout = lake.register("web.exports", penstock.hive(root, "app string"))
        self.swept(lake.table("web.t"), tmp_path)  # type: ignore[arg-type]
        assert layout.arrow().num_rows == 1
        assert (root / "app=b").is_dir()

    def test_files_that_another_table_adopted(self, table: ManagedTable, tmp_path: Path) -> None:
        kept = home(table) / "data" / "kept.parquet"
        kept.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"n": pa.array([7], pa.int64())}), kept)
        other = penstock.connect(tmp_path).catalog.create_table("web.other", pa.schema({"n": pa.int64()}))
        other.add_files([str(kept)])
        other.delete("n = 7")  # only an older snapshot has it now
        self.swept(table, tmp_path)
        assert other.scan(snapshot_id=other.metadata.snapshots[0].snapshot_id).to_arrow()["n"].to_pylist() == [7]

    def test_a_table_that_lies_in_the_location_of_another_is_swept(self, table: ManagedTable, tmp_path: Path) -> None:
        penstock.connect(tmp_path).catalog.create_table(
            "web.outer", pa.schema({"n": pa.int64()}), location=str(tmp_path)
        )
        self.swept(table, tmp_path)

    @pytest.mark.parametrize("where", ["", "/data"])
    def test_a_layout_over_the_table_itself_is_refused(self, table: ManagedTable, tmp_path: Path, where: str) -> None:
        lake = penstock.connect(tmp_path)
        lake.register("web.raw", penstock.hive(f"{home(table)}{where}", "app string", "n bigint"))
        left(table, "data/app=a/left.parquet", 30)
        before = files_below(tmp_path)
        with pytest.raises(LakeError, match=r"belongs to web\.raw, whose files cannot be told"):
            lake.table("web.t").sweep()  # type: ignore[union-attr]
        assert files_below(tmp_path) == before

    def test_a_table_that_cannot_be_loaded_is_refused(self, table: ManagedTable, tmp_path: Path) -> None:
        other = penstock.connect(tmp_path).create_table("web.other", "n bigint")
        Path(local(other.table.metadata_location)).unlink()
        left(table, "data/app=a/left.parquet", 30)
        before = files_below(tmp_path)
        for do in (table.sweep, lambda: table.expire(NOW)):
            with pytest.raises(LakeError, match=r"web\.other cannot be loaded, and may need files") as raised:
                do()
            assert "\n" not in str(raised.value)
        assert files_below(tmp_path) == before
        assert len(table.refresh().table.metadata.snapshots) == 3

    def test_a_table_whose_manifests_cannot_be_read_is_refused(self, table: ManagedTable, tmp_path: Path) -> None:
        other = penstock.connect(tmp_path).create_table("web.other", "n bigint")
        other.append(pa.table({"n": [1]}))
        Path(local(other.table.metadata.current_snapshot().manifest_list)).unlink()
        _lists.cache_clear()
        left(table, "data/app=a/left.parquet", 30)
        before = files_below(tmp_path)
        with pytest.raises(LakeError, match=r"web\.other cannot be loaded, and may need files"):
            table.sweep()
        assert files_below(tmp_path) == before

    def test_a_catalog_that_does_not_list_is_refused(
        self, table: ManagedTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def forbidden(*_: Any) -> Any:
            raise RuntimeError("403\nForbidden")

        left(table, "data/app=a/left.parquet", 30)
        before = files_below(tmp_path)
        monkeypatch.setattr(type(table.table.catalog), "list_namespaces", forbidden)
        for do in (table.sweep, lambda: table.expire(NOW)):
            with pytest.raises(LakeError, match=r"the catalog does not list its tables.* 403 Forbidden"):
                do()
        assert files_below(tmp_path) == before

    def test_a_declaration_that_cannot_be_read_is_refused(self, table: ManagedTable, tmp_path: Path) -> None:
        declared = tmp_path / "penstock" / "tables" / "web" / "odd.json"
        declared.parent.mkdir(parents=True)
        declared.write_text("{")
        left(table, "data/app=a/left.parquet", 30)
        with pytest.raises(LakeError, match=r"the declaration of web\.odd cannot be read"):
            table.sweep()


def test_a_file_that_cannot_be_removed_is_said(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(table, "data/left.parquet", 30)
    real = LocalFileSystem()

    class Refusing:
        def delete_file(self, path: str) -> None:
            raise PermissionError(13, "Permission denied", path)

        def get_file_info(self, path: str) -> Any:
            return real.get_file_info(path)

    monkeypatch.setattr("penstock.storage.local_storage.LocalFileSystem", Refusing)
    with pytest.raises(StorageError, match=r"cannot delete .*left\.parquet: .*Permission denied"):
        table.sweep()


def test_a_file_that_went_though_the_storage_complained_counts_as_removed(
    table: ManagedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, real = left(table, "data/left.parquet", 30), LocalFileSystem()

    class Complaining:
        def delete_file(self, path: str) -> None:
            real.delete_file(path)
            raise OSError("no marker of the directory could be made")

        def get_file_info(self, path: str) -> Any:
            return real.get_file_info(path)

    monkeypatch.setattr("penstock.storage.local_storage.LocalFileSystem", Complaining)
    assert [local(path) for path in table.sweep().paths] == [gone]
    assert not Path(gone).exists()


def test_an_empty_table_has_nothing_to_sweep(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "n bigint")
    assert table.sweep().files == 0
    assert str(table.sweep(dry_run=True)) == "would remove 0 files that no snapshot has, 0 bytes"
