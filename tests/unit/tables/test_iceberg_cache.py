"""The cache of decoded manifests: decoded once, whoever asks; bounded; damage is never believed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import ManifestFile
from pyiceberg.types import LongType

from penstock.errors import StorageError
from penstock.tables.iceberg.manifest import manifest_cache as cache_module
from penstock.tables.iceberg.manifest.manifest_cache import ManifestCache, cache_key, default_cache
from penstock.tables.iceberg.manifest.manifest_decode import decode_manifest
from penstock.tables.iceberg.manifest.manifest_store import ManifestStore, cache_folder
from tests.fixtures.manifest_writer import IO, write_manifest
from tests.fixtures.processes import PATIENCE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of a test."""
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "manifests"


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the manifests that are decoded, in their order."""
    names: list[str] = []

    def counting(manifest: ManifestFile, io: Any) -> pa.Table:
        names.append(Path(manifest.manifest_path).name)
        return decode_manifest(manifest, io)

    monkeypatch.setattr(cache_module, "decode_manifest", counting)
    return names


def make(tmp_path: Path, name: str = "m", files: int = 3) -> ManifestFile:
    bounds = {"lower_bounds": {1: b"\1" + b"\0" * 7}, "value_counts": {1: 4}}
    return write_manifest(tmp_path / name, [{"file_path": f"{name}{i}", **bounds} for i in range(files)])


def paths(entries: Any) -> list[str]:
    return list(entries.column("file_path").to_pylist())


def only_file(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def test_a_manifest_comes_from_storage_then_memory_then_disk(tmp_path: Path, folder: Path, decoded: list[str]) -> None:
    manifest, cache = make(tmp_path), ManifestCache()
    first = cache.entries(manifest, IO)
    assert cache.entries(manifest, IO) is first
    assert cache.origins == Counter(memory=1, disk=0, storage=1)
    other = ManifestCache()
    again = other.entries(manifest, IO)
    assert other.origins == Counter(disk=1)
    assert again.table.equals(first.table)
    assert again.table.schema.equals(first.table.schema, check_metadata=True)
    assert again.partition(0, pa.int32()) is None
    assert decoded == ["m"]


def test_many_keeps_the_order_and_reads_each_once(tmp_path: Path, folder: Path, decoded: list[str]) -> None:
    manifests = [make(tmp_path, f"m{i}", i + 1) for i in range(6)]
    cache = ManifestCache(threads=3)
    cache.entries(manifests[2], IO)
    found = cache.many([*manifests, manifests[4]], IO)
    assert [entries.count for entries in found] == [1, 2, 3, 4, 5, 6, 5]
    assert found[4] is found[6]
    assert sorted(decoded) == [f"m{i}" for i in range(6)]
    assert cache.origins == Counter(memory=2, storage=6)
    assert cache.many([], IO) == []


def test_the_key_is_everything_the_list_says(tmp_path: Path) -> None:
    base = make(tmp_path)
    changes: dict[str, Any] = {
        "manifest_path": "other",
        "manifest_length": 1,
        "added_snapshot_id": 1,
        "sequence_number": 1,
        "partition_spec_id": 9,
        "content": 1,
        "added_files_count": 9,
        "existing_files_count": 9,
        "deleted_files_count": None,
    }
    says = [
        "manifest_path",
        "manifest_length",
        "partition_spec_id",
        "content",
        "sequence_number",
        "min_sequence_number",
    ]
    says += ["added_snapshot_id", "added_files_count", "existing_files_count", "deleted_files_count"]
    known = {name: getattr(base, name) for name in says}
    keys = {cache_key(ManifestFile.from_args(**{**known, name: value}), IO) for name, value in changes.items()}
    assert len(keys | {cache_key(base, IO)}) == len(changes) + 1


def test_clear_forgets_memory_and_disk(tmp_path: Path, folder: Path, decoded: list[str]) -> None:
    cache = ManifestCache()
    cache.entries(make(tmp_path), IO)
    cache.clear()
    assert cache.nbytes == 0
    assert list(folder.iterdir()) == []
    cache.entries(make(tmp_path), IO)
    assert decoded == ["m", "m"]


# Damage --------------------------------------------------------------------------------------------------------------

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut in the header": lambda data: data[:20],
    "cut in the middle": lambda data: data[: len(data) // 2],
    "last byte missing": lambda data: data[:-1],
    "more behind it": lambda data: data + b"\0",
    "not ours": lambda data: b"PAR1" + data[4:],
    "all zero": lambda data: b"\0" * len(data),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_thrown_away_and_decoded_again(
    tmp_path: Path, folder: Path, decoded: list[str], damage: str
) -> None:
    manifest = make(tmp_path)
    ManifestCache().entries(manifest, IO)
    file = only_file(folder)
    whole = file.read_bytes()
    file.write_bytes(DAMAGE[damage](whole))
    assert paths(ManifestCache().entries(manifest, IO)) == ["m0", "m1", "m2"]
    assert decoded == ["m", "m"]
    assert only_file(folder).read_bytes() == whole


def test_no_flipped_bit_is_believed(tmp_path: Path, folder: Path) -> None:
    manifest = make(tmp_path)
    key = cache_key(manifest, IO)
    store = ManifestStore(folder, 1 << 30)
    store.save(key, decode_manifest(manifest, IO))
    file = only_file(folder)
    whole = file.read_bytes()
    for position in range(0, len(whole), 11):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 1 << position % 8]) + whole[position + 1 :])
        assert store.load(key) is None, position
        assert not file.exists()


def test_a_file_under_another_name_is_not_believed(tmp_path: Path, folder: Path) -> None:
    one, other = make(tmp_path, "a"), make(tmp_path, "b")
    cache = ManifestCache()
    cache.entries(one, IO)
    os.rename(only_file(folder), folder / f"{cache_key(other, IO).hex()}.arrow")
    assert paths(ManifestCache().entries(other, IO)) == ["b0", "b1", "b2"]


def test_errors_are_not_kept(tmp_path: Path, folder: Path) -> None:
    manifest, cache = make(tmp_path), ManifestCache()
    data = (tmp_path / "m").read_bytes()
    (tmp_path / "m").unlink()
    for read in (lambda: cache.entries(manifest, IO), lambda: cache.many([manifest, manifest], IO)):
        with pytest.raises(StorageError, match="does not exist"):
            read()
    (tmp_path / "m").write_bytes(data)
    assert cache.entries(manifest, IO).count == 3


# Folders -------------------------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoded: list[str]
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "file"))
    manifest, cache = make(tmp_path), ManifestCache()
    assert cache.entries(manifest, IO) is cache.entries(manifest, IO)
    cache.clear()
    assert cache.entries(manifest, IO).count == 3
    assert decoded == ["m", "m"]


def test_a_full_disk_is_no_error(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert ManifestCache().entries(make(tmp_path), IO).count == 3
    assert list(folder.iterdir()) == []


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", "/x")
    assert cache_folder() == Path("/x")
    monkeypatch.delenv("PENSTOCK_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/y")
    assert cache_folder() == Path("/y/penstock")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/u")
    assert cache_folder() == Path("/home/u/.cache/penstock")


def test_only_the_user_can_read_it(tmp_path: Path, folder: Path) -> None:
    ManifestCache().entries(make(tmp_path), IO)
    assert folder.stat().st_mode & 0o077 == 0
    assert only_file(folder).stat().st_mode & 0o077 == 0


def test_no_disk_when_it_is_not_wanted(tmp_path: Path, folder: Path) -> None:
    ManifestCache(disk_bytes=0).entries(make(tmp_path), IO)
    assert not folder.exists()


def test_the_default_cache_is_made_once_and_writes_nothing(folder: Path) -> None:
    default_cache.cache_clear()
    try:
        assert default_cache() is default_cache()
        assert not folder.exists()
    finally:
        default_cache.cache_clear()


# Bounds --------------------------------------------------------------------------------------------------------------


def test_the_memory_bound_holds_and_the_last_used_stay(tmp_path: Path, folder: Path) -> None:
    manifests = [make(tmp_path, f"m{i}") for i in range(6)]
    size = ManifestCache().entries(manifests[0], IO).nbytes
    cache = ManifestCache(memory_bytes=int(size * 3.5))
    for manifest in manifests[:3]:
        cache.entries(manifest, IO)
    kept = cache.entries(manifests[0], IO)
    cache.entries(manifests[3], IO)
    assert cache.nbytes <= size * 3.5
    assert cache.entries(manifests[0], IO) is kept
    before = cache.origins["disk"]
    cache.entries(manifests[1], IO)
    assert cache.origins["disk"] == before + 1


def test_columns_made_later_count_too(tmp_path: Path, folder: Path) -> None:
    manifests = [make(tmp_path, f"m{i}", files=50) for i in range(3)]
    cache = ManifestCache()
    found = cache.many(manifests, IO)
    before = cache.nbytes
    for entries in found:
        entries.bounds(1, LongType())
    assert cache.nbytes == sum(entries.nbytes for entries in found) > before
    small = ManifestCache(memory_bytes=before, threads=1)
    found = small.many(manifests, IO)
    for entries in found:
        entries.bounds(1, LongType())
        entries.counts(1)
        assert 0 <= small.nbytes <= before
    assert small.entries(manifests[1], IO) is not found[1], "it made room for the columns of the first"


def test_a_manifest_larger_than_memory_is_read_and_not_kept(tmp_path: Path, folder: Path) -> None:
    cache = ManifestCache(memory_bytes=10)
    assert cache.entries(make(tmp_path), IO).count == 3
    assert cache.nbytes == 0


def test_the_disk_bound_holds_and_the_last_used_stay(tmp_path: Path, folder: Path) -> None:
    manifests = [make(tmp_path, f"m{i}") for i in range(6)]
    ManifestCache().entries(manifests[0], IO)
    size = only_file(folder).stat().st_size
    most = int(size * 4.5)
    cache = ManifestCache(memory_bytes=0, disk_bytes=most)
    for age, manifest in enumerate(manifests[1:4]):
        cache.entries(manifest, IO)
        for file in folder.iterdir():
            os.utime(file, (age, age)) if file.stat().st_mtime > 1000 else None
    cache.entries(manifests[0], IO)  # from disk: used now
    for manifest in manifests[4:6]:
        cache.entries(manifest, IO)
        assert sum(file.stat().st_size for file in folder.iterdir()) <= most + size // 10
    names = {file.stem for file in folder.iterdir()}
    assert cache_key(manifests[0], IO).hex() in names
    assert cache_key(manifests[1], IO).hex() not in names
    large = ManifestCache(disk_bytes=10)
    assert large.entries(manifests[1], IO).count == 3


def test_what_a_dead_process_left_is_removed(tmp_path: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    old, new = folder / "old.tmp", folder / "new.tmp"
    for file in (old, new):
        file.write_bytes(b"x")
    os.utime(old, (1, 1))
    ManifestCache().entries(make(tmp_path), IO)
    assert not old.exists()
    assert new.exists()


# At the same time ----------------------------------------------------------------------------------------------------


def test_threads_that_ask_at_once_decode_once(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, cache, calls = make(tmp_path), ManifestCache(), []
    everybody = threading.Barrier(8)

    def slow(manifest: ManifestFile, io: Any) -> pa.Table:
        calls.append(1)
        time.sleep(0.1)
        return decode_manifest(manifest, io)

    def ask(_: int) -> Any:
        everybody.wait()
        return cache.entries(manifest, IO)

    monkeypatch.setattr(cache_module, "decode_manifest", slow)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert len(calls) == 1
    assert all(entries is found[0] for entries in found)
    assert cache.origins == Counter(memory=7, storage=1)


def test_threads_that_wait_for_an_error_get_it(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, cache = make(tmp_path), ManifestCache()
    started = threading.Event()

    def failing(*_: object) -> pa.Table:
        started.set()
        time.sleep(0.1)
        raise StorageError("no")

    monkeypatch.setattr(cache_module, "decode_manifest", failing)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.entries, manifest, IO)
        started.wait()
        second = pool.submit(cache.entries, manifest, IO)
        for asked in (first, second):
            with pytest.raises(StorageError, match="no"):
                asked.result()


def test_threads_with_little_memory_are_all_right(tmp_path: Path, folder: Path) -> None:
    manifests = [make(tmp_path, f"m{i}", files=i + 1) for i in range(10)]
    size = ManifestCache().entries(manifests[9], IO).nbytes
    cache = ManifestCache(memory_bytes=size * 2, disk_bytes=20_000)

    def ask(i: int) -> bool:
        entries = cache.entries(manifests[i % 10], IO)
        entries.bounds(1, LongType())
        return paths(entries) == [f"m{i % 10}{j}" for j in range(i % 10 + 1)]

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(ask, range(300)))
    assert 0 <= cache.nbytes <= size * 2


PROCESS = """
import sys
from pathlib import Path
from penstock.tables.iceberg.manifest.manifest_cache import ManifestCache
from tests.fixtures.manifest_writer import IO, listed_manifest
cache = ManifestCache(memory_bytes=0, disk_bytes=int(sys.argv[2]))
for _ in range(20):
    for i in range(4):
        manifest = listed_manifest(Path(sys.argv[1]) / f"m{i}", [1] * 3)
        assert cache.entries(manifest, IO).column("file_path").to_pylist() == [f"m{i}{j}" for j in range(3)]
print(cache.origins["disk"] > 0 or cache.origins["storage"] == 80)
"""


@pytest.mark.parametrize("most", [1 << 30, 12_000])
def test_processes_share_the_folder(tmp_path: Path, folder: Path, most: int) -> None:
    for i in range(4):
        make(tmp_path, f"m{i}")
    root = Path(__file__).parents[3]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path), str(most)], cwd=root, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [process.communicate(timeout=PATIENCE)[0].strip() for process in started] == ["True", "True"]
    assert {file.suffix for file in folder.iterdir()} == {".arrow"}
