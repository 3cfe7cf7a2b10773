"""A hundred partitions grow, and one of them is wanted: what is listed, opened and read is that of the one.

Files of other partitions are taken away before the stream reads: if it opened one of them, it would fail.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.spark.stream.stream_report import SourceReport, StreamReport
from penstock.stream.feed import Look
from tests.unit.stream.conftest import HiveSource, ManagedSource, Source, Stream, rows_of

PARTITIONS = 100
EXPECTED = {  # partitions seen and pruned, files seen and pruned, List calls
    "HiveSource": (PARTITIONS, PARTITIONS - 1, None, 0, 2),
    "IcebergSource": (PARTITIONS, PARTITIONS - 1, PARTITIONS, PARTITIONS - 1, 0),
    "ManagedSource": (1, 0, 1, 0, 0),  # all partitions share a file
}


def grow(source: Source, turn: int) -> list[Path]:
    """Two rows for each partition; the files that are new."""
    before = set(source.root.rglob("*.parquet"))
    ids = {i: [turn * 1_000 + 2 * i, turn * 1_000 + 2 * i + 1] for i in range(PARTITIONS)}
    if isinstance(source, HiveSource):
        for i, own in ids.items():
            source.add(f"a{i}", own)
    else:
        source.append(pa.concat_tables([rows_of(f"a{i}", own) for i, own in ids.items()]))
    return sorted(set(source.root.rglob("*.parquet")) - before)


def test_of_a_hundred_growing_partitions_only_the_one_is_read(source: Source) -> None:
    stream = Stream(source, where="app = 'a7'", on_missing="error")
    total = 0
    for turn in range(3):
        new = grow(source, turn)
        own = new if isinstance(source, ManagedSource) else [file for file in new if "app=a7/" in str(file)]
        total += sum(file.stat().st_size for file in own)
        for file in set(new) - set(own):
            file.unlink()
        assert stream.poll() == [turn * 1_000 + 14, turn * 1_000 + 15]
        assert [Path(path).name for path in stream.files] == [file.name for file in own]
        assert stream.position["total"] == {"files": turn + 1, "bytes": total}
        seen, pruned, files, files_pruned, lists = EXPECTED[type(source).__name__]
        look = stream.look
        assert (look.partitions, look.partitions_pruned, look.list_calls) == (seen, pruned, lists)
        assert (look.files, look.files_pruned) == (turn + 1 if files is None else files, files_pruned)


def test_directories_above_the_bottom_are_no_partitions_unless_they_are_pruned(tmp_path: Path) -> None:
    source = HiveSource(tmp_path / "t", "dt int, app string")
    for partition in ("dt=1/app=a", "dt=1/app=b", "dt=2/app=a"):
        source.add(partition, [1])
    for where, counts in (("true", (3, 0)), ("app = 'a'", (3, 1)), ("dt = 2", (2, 1))):
        stream = Stream(source, where=where)
        stream.poll()
        assert (stream.look.partitions, stream.look.partitions_pruned) == counts


def test_one_of_something_is_said_in_the_singular() -> None:
    look = Look(partitions=1, files=1, pending_files=1, pending_snapshots=1)
    report = StreamReport("q", True, 0, 1, 1, None, [SourceReport("web.t", "TRUE", 1, 10, look.to_dict())])
    assert str(report).splitlines() == [
        "q running at batch 0: 1 row in 1 batch",
        "web.t where TRUE",
        "  read        1 file, 10 B",
        "  partitions  1 seen, 0 pruned, at the last look",
        "  files       1 seen, 0 pruned, at the last look",
        "  behind      1 file, 1 snapshot, 0.0 s",
    ]
