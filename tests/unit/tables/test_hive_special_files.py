"""What a local disk may hold besides files and directories: an error that names it, never a hang or a missing row."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock.errors import LayoutError, MissingError, PenstockError, StorageError
from penstock.tables.hive.hive_table import HiveTable
from tests.fixtures.hive_writer import write_file


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def make_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_link_to_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def make_link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


SPECIAL: list[tuple[Callable[[Path], None], type[PenstockError], str]] = [
    (make_pipe, LayoutError, "is a pipe, socket or device, expected a file or directory; remove it"),
    (make_socket, LayoutError, "is a pipe, socket or device, expected a file or directory; remove it"),
    (make_link_to_a_device, LayoutError, "is a pipe, socket or device, expected a file or directory; remove it"),
    (make_link_to_nothing, MissingError, "is a symbolic link to a missing target; restore its target, or remove"),
    (make_link_to_itself, StorageError, "Too many levels of symbolic links"),
]
special = pytest.mark.parametrize(("make", "error", "message"), SPECIAL)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # the address of a socket must be short
    for name in ("k=1", "k=2"):
        write_file(tmp_path / name / "a.parquet")
    return tmp_path


def table_of(root: Path, schema: str | None = "n bigint") -> HiveTable:
    return penstock.hive(root, "k int", schema)


@special
@pytest.mark.parametrize("name", ["x", "k=3", "k=2/b.parquet", "k=2/000000_0"])
def test_a_special_file_is_an_error_where_it_is_listed(
    root: Path, make: Callable[[Path], None], error: type[PenstockError], message: str, name: str
) -> None:
    table = table_of(root)
    make(Path(name))
    for ask in (table.plan, table.arrow, table.partitions):
        with pytest.raises(error) as caught:
            ask()
        assert message in str(caught.value)
        assert f"{root}/{name}" in str(caught.value)


@special
def test_a_special_file_that_is_hidden_or_in_a_pruned_branch_is_not_looked_at(
    root: Path, make: Callable[[Path], None], error: type[PenstockError], message: str
) -> None:
    for name in ("_x", ".x", "k=1/_x", "k=2/x", "k=3"):
        make(Path(name))
    assert table_of(root, None).arrow("k = 1").num_rows == 1


@special
@pytest.mark.parametrize("declared", ["k int", "auto"])
def test_a_special_file_is_an_error_when_the_schema_is_looked_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    error: type[PenstockError],
    message: str,
    declared: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").touch()
    make(Path("b"))
    with pytest.raises(error, match=message):
        penstock.hive(tmp_path, declared)


def test_a_directory_whose_entries_may_not_be_looked_at_is_one_line(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory with `r` and without `x`: its names can be listed, and nothing else."""
    table, real = table_of(root), os.stat

    def stat(path: str) -> os.stat_result:
        if "k=2/" in str(path):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("penstock.storage.entries.os.stat", stat)
    with pytest.raises(StorageError) as caught:
        table.plan()
    assert str(caught.value) == f"cannot read {root}/k=2/a.parquet: Permission denied; check permissions"
    assert table.arrow("k = 1").num_rows == 1
