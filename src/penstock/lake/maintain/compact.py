"""Compaction: files that are too small, lie in the wrong place or lost rows are written anew, in one commit.

| a file is written anew | because |
|---|---|
| of a spec that is not written any more | its rows belong elsewhere |
| with delete files that apply to it | the rows are gone |
| whose sidecars are not those of today's hot keys, or not recorded | its maps would be read for every query |
| shared, without a complete record of its logical partitions | it would be read for every query |
| shared, with a logical partition that has grown | that one gets files of its own |
| of a logical partition that has shrunk | it shares files again |
| one of several small files of the same partition | they become fewer |
| shared, when its values lie in many files | each value should lie in one |

Delete files that apply to no data file any more are removed. Rows that others append meanwhile are not touched. When
others rewrite or delete the same files, or rows of them, it plans again. All manifests come out in the order of their
partitions, so that planning opens few of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table import Table

from penstock.expr.tree import Column, Expr, Lookup
from penstock.formats.manifest_record import record_size
from penstock.lake.commit.commit import fresh, replanned
from penstock.lake.commit.snapshot import Change
from penstock.lake.layout.live_files import LiveFile, live_files, logical_sizes
from penstock.lake.layout.slots import assign, partition_key
from penstock.lake.layout.table_layout import Tuple
from penstock.lake.write.arrangement import write_rows
from penstock.lake.write.changed_files import LOCALLY
from penstock.lake.write.data_files import WrittenFile
from penstock.lake.write.hot_key_choice import choose_again
from penstock.lake.write.row_change import unfiltered
from penstock.lake.write.writes import commit_written, prepare
from penstock.progress import Count, Counted, counted, progress
from penstock.prune.plan import Plan
from penstock.tables import bridge
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import Reader
from penstock.tables.iceberg.scan.scan_plan import delete_batches, only

_SMALL = 0.75  # of the target size
_SHRUNK = 1.25  # by so much a partition must be below the size, or it would come and go with each compaction
_SPREAD = 2.0  # files that a value of a shared file lies in, on average
_MANIFEST = 8 << 20
_GATHERED = 1 << 30


@dataclass(frozen=True)
class Compaction:
    """What a compaction did."""

    files_before: int = 0
    files_after: int = 0
    rewritten: int = 0
    written: int = 0
    bytes_rewritten: int = 0
    bytes_written: int = 0
    promoted: int = 0
    folded: int = 0
    delete_files_removed: int = 0
    manifests_before: int = 0
    manifests_after: int = 0

    def to_dict(self) -> dict[str, int]:
        """The numbers, for machines."""
        return asdict(self)

    def __str__(self) -> str:
        parts = [self._files_text] if self.rewritten else []
        if self.delete_files_removed:
            parts.append(f"{counted(self.delete_files_removed, 'delete file')} removed")
        if self.manifests_before != self.manifests_after:
            parts.append(f"{counted(self.manifests_before, 'manifest')} became {self.manifests_after:,}")
        return "; ".join(parts) or "nothing to compact"

    @property
    def _files_text(self) -> str:
        moved = []
        if self.promoted:
            whose = "its" if self.promoted == 1 else "their"
            moved.append(f"{counted(self.promoted, 'logical partition')} got files of {whose} own")
        if self.folded:
            share = "shares" if self.folded == 1 else "share"
            moved.append(f"{counted(self.folded, 'logical partition')} {share} files now")
        became = f"{Counted(self.rewritten, self.files_before, 'file')} became {self.written:,}"
        reasons = f" ({', '.join(moved)})" if moved else ""
        return f"{became}{reasons}, {counted(self.files_after, 'file')} in all"


@dataclass(frozen=True, repr=False)
class ChosenFiles(IcebergTable):
    """A version of a table that has some of its files only."""

    chosen: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What makes two of them the same to Spark."""
        return f"{super().key} files {hash(self.chosen):x}"

    def planned(
        self, predicate: Expr, limit: int | None = None, keys: Sequence[Lookup] = (), also: Sequence[Column] = ()
    ) -> Plan:
        return only(super().planned(predicate, limit, keys, also), self.chosen)


def compact(table: IcebergTable, where: str | None) -> tuple[Table, Compaction]:
    """Compact a table; PyIceberg's table afterwards, and what was done."""
    table.plan(where, limit=0)  # an error in the predicate is said before anything is written
    table = replace(table, table=choose_again(table))
    published, *passes = _compact(table, where)
    if any(file.logical is None for file in passes[0].chosen.values()):
        # Now it is known which logical partitions those files had: some may lie beside small files of their own.
        published, second = _compact(replace(table, table=published), where)
        passes.append(second)
    return published, _result(passes, replace(table, table=published))


def _compact(table: IcebergTable, where: str | None) -> tuple[Table, _Work]:
    """Compact once; PyIceberg's table afterwards, and what was done."""

    def once(now: IcebergTable) -> tuple[Table, _Work]:
        work = _Work(now, where)
        if not work.chosen and not work.dangling and not _need_order(work.manifests):
            return now.table, work
        work.write()
        change = Change(
            "replace",
            work.written,
            frozenset(work.chosen),
            now.version.snapshot_id,
            dangling=work.dangling,
            sort_manifests=True,
        )
        return commit_written(now, change, work.written).table, work

    hint = "nothing was changed; compact when they are done, or less at once: where=…"
    return replanned(replace(table, table=fresh(table.table)), once, hint)


class _Work:
    """What there is to do in one version of a table, and then the files that were written for it."""

    def __init__(self, table: IcebergTable, where: str | None) -> None:
        job = prepare(table, files=())
        self.table, self.layout, self.target = table, job.layout, job.target
        self.manifests = _manifests(table)
        self.files = live_files(table, self.layout)
        self.sizes = logical_sizes(self.files)
        self.job = replace(job.again(), known=self.sizes, known_is_all=True)
        self.tasks = {task.path: unfiltered(task) for task in table.plan(where).files}
        paths = self._choose([file for file in self.files if file.path in self.tasks])
        self.chosen = {file.path: file for file in self.files if file.path in paths}
        self.dangling = self._dangling()
        self.written: list[WrittenFile] = []

    def write(self) -> None:
        """Write the rows of the chosen files as new files."""
        tasks = [task for path, task in self.tasks.items() if path in self.chosen]
        if not tasks:
            return
        table, read = self.table, Count(len(tasks), "file")
        if sum(task.size or 0 for task in tasks) > LOCALLY:
            chosen = tuple(task.path for task in tasks)
            own = ChosenFiles(table.name, table.table, table.sources, table.snapshot, chosen, context=table.context)
            self.written = bridge.rewrite(self.job, own)
            return
        reader = Reader(table.version, table.sources.io, table.context.timezone)
        names = [field.name for field in self.layout.schema.fields]
        with progress("reading and rewriting", read):
            self.written = write_rows(self.job, read.each(reader.rows(tasks, names)), gathered=_GATHERED)

    def moved(self, *, to_own: bool) -> int:
        """How many logical partitions left shared files for files of their own, or the other way."""
        fine = self.layout.fine.spec_id
        source, before = set[Tuple](), set[Tuple]()
        for file in self.chosen.values():
            (before if (file.spec_id == fine) == to_own else source).update(file.logical or ())
        now = {each for file in self.written if (file.spec_id == fine) == to_own for each in file.logical}
        return len((source & now) - before)

    def _choose(self, candidates: Sequence[LiveFile]) -> set[str]:
        chosen = {file.path for file in candidates if self._misplaced(file)}
        arriving = {home for file in candidates if file.path in chosen for home in self._homes(file)}
        groups: dict[Tuple, list[LiveFile]] = defaultdict(list)
        for file in candidates:
            if file.path not in chosen:
                groups[(file.spec_id, partition_key(file.partition))].append(file)
        for home, members in groups.items():
            small = [file for file in members if self._is_small(file)]
            if small and self._files_needed(small) < len(small) + (home in arriving):
                chosen |= {file.path for file in small}
            if home[0] == self.layout.coarse_id and _spread(members) >= _SPREAD:
                chosen |= {file.path for file in members}
        return chosen

    def _dangling(self) -> frozenset[str]:
        """The delete files that apply to none of the data files that stay."""
        known = _delete_files(self.table)
        staying = (task for task in self.table.plan().files if task.path not in self.chosen) if known else ()
        return known - {delete.path for task in staying for delete in task.deletes}

    def _misplaced(self, file: LiveFile) -> bool:
        if self.tasks[file.path].deletes or not self.layout.is_shredded_as_wanted(file.shredding):
            return True
        if file.spec_id == self.layout.coarse_id:
            if file.logical is None:
                return True
            return not all(self.layout.shares(fine, self.sizes.get(fine, 0)) for fine in file.logical)
        if file.spec_id != self.layout.fine.spec_id:
            return True
        return self.layout.shares(file.partition, _SHRUNK * self.sizes.get(file.partition, 0))

    def _is_small(self, file: LiveFile) -> bool:
        """Whether a file could hold more; the record of a shared one may be full before the file itself is."""
        if file.bytes >= _SMALL * self.target:
            return False
        if file.spec_id != self.layout.coarse_id:
            return True
        recorded = sum(record_size(self.layout.logical_tuple(fine)) for fine in file.logical or ())
        return recorded < _SMALL * self.layout.record_bytes

    def _files_needed(self, files: Sequence[LiveFile]) -> int:
        """How many files the rows of some would lie in after a rewrite."""
        sizes = logical_sizes(files)
        totals = [self.sizes[fine] for fine in sizes]
        return len(assign(self.layout, list(sizes), list(sizes.values()), totals, self.target).slots)

    def _homes(self, file: LiveFile) -> Iterator[tuple[int | None, Tuple]]:
        """The partitions that the rows of a file will go to, as far as that is known."""
        for fine in file.logical or ():
            if self.layout.shares(fine, self.sizes.get(fine, 0)):
                yield self.layout.coarse_id, partition_key(self.layout.coarse_tuple(fine))
            else:
                yield self.layout.fine.spec_id, partition_key(fine)


def _manifests(table: IcebergTable) -> list[ManifestFile]:
    manifests = table.sources.lists.of(table.version.snapshot, table.sources.io)
    return [
        m for m in manifests if m.content == ManifestContent.DATA and (m.has_added_files() or m.has_existing_files())
    ]


def _delete_files(table: IcebergTable) -> frozenset[str]:
    batches = delete_batches(table.version, table.sources)
    return frozenset(path for batch in batches for path in batch.column("file_path").to_pylist())


def _need_order(manifests: Sequence[ManifestFile]) -> bool:
    """Whether there are more manifests than the entries need."""
    lengths_by_spec: dict[int, list[int]] = defaultdict(list)
    for manifest in manifests:
        lengths_by_spec[manifest.partition_spec_id].append(manifest.manifest_length)
    return any(len(lengths) > 1 + 2 * sum(lengths) // _MANIFEST for lengths in lengths_by_spec.values())


def _result(passes: Sequence[_Work], after: IcebergTable) -> Compaction:
    """What was done; a file that the first pass wrote and the second wrote again does not count."""
    written = {file.path: file for work in passes for file in work.written}
    rewritten = {path: file for work in passes for path, file in work.chosen.items()}
    gone = [file for path, file in rewritten.items() if path not in written]
    new = [file for path, file in written.items() if path not in rewritten]
    last = passes[-1]
    files_after = len(last.files) - len(last.chosen) + len(last.written)
    return Compaction(
        files_before=files_after + len(gone) - len(new),
        files_after=files_after,
        rewritten=len(gone),
        written=len(new),
        bytes_rewritten=sum(file.bytes for file in gone),
        bytes_written=sum(file.bytes for file in new),
        promoted=sum(work.moved(to_own=True) for work in passes),
        folded=sum(work.moved(to_own=False) for work in passes),
        delete_files_removed=len(_delete_files(passes[0].table) - _delete_files(after)),
        manifests_before=len(passes[0].manifests),
        manifests_after=len(_manifests(after)),
    )


def _spread(files: Sequence[LiveFile]) -> float:
    """How many of the files a logical partition lies in, on average."""
    values = {fine for file in files for fine in file.logical or ()}
    return sum(len(file.logical or ()) for file in files) / max(1, len(values))
