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

Rows that others append meanwhile are not touched. When others rewrite or delete the same files, it plans again. All
manifests come out in the order of their partitions, so that planning opens few of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import ConflictError, PenstockError
from penstock.expr.tree import Expr, Lookup
from penstock.formats.manifest_record import record_size
from penstock.lake.commit.commit import fresh, has_moved_on
from penstock.lake.commit.snapshot import Change
from penstock.lake.layout.live_files import LiveFile, live_files, logical_sizes
from penstock.lake.layout.slots import assign
from penstock.lake.layout.table_layout import Layout, Tuple
from penstock.lake.write.data_files import WriteJob, WrittenFile, fine_tuples, write_rows
from penstock.lake.write.hot_key_choice import choose_again
from penstock.lake.write.removal import unfiltered
from penstock.lake.write.writes import LOCALLY, attempt, prepare
from penstock.progress import Count, Counted, counted, progress
from penstock.prune.file_task import FileTask
from penstock.prune.plan import Plan
from penstock.tables import bridge
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import Reader
from penstock.tables.iceberg.scan.scan_plan import only

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

_ATTEMPTS = 20
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
    manifests_before: int = 0
    manifests_after: int = 0

    def to_dict(self) -> dict[str, int]:
        """The numbers, for machines."""
        return asdict(self)

    def __str__(self) -> str:
        if not self.rewritten and self.manifests_before == self.manifests_after:
            return "nothing to compact"
        parts = [self._files_text] if self.rewritten else []
        if self.manifests_before != self.manifests_after:
            parts.append(f"{counted(self.manifests_before, 'manifest')} became {self.manifests_after:,}")
        return "; ".join(parts)

    @property
    def _files_text(self) -> str:
        moved = [
            f"{counted(number, 'logical partition')} {one if number == 1 else several}"
            for number, one, several in (
                (self.promoted, "got files of its own", "got files of their own"),
                (self.folded, "shares files now", "share files now"),
            )
            if number
        ]
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

    def _plan(self, predicate: Expr, limit: int | None, keys: Sequence[Lookup]) -> Plan:
        return only(super()._plan(predicate, limit, keys), self.chosen)


def compact(table: IcebergTable, where: str | None) -> tuple[Table, Compaction]:
    """Compact a table; PyIceberg's table afterwards, and what was done."""
    table.plan(where, limit=0)  # an error in the predicate is said before anything is written
    table = replace(table, table=choose_again(table))
    published, *passes = _compact(table, where)
    if not passes[0].work.knows_all:
        # Now it is known which logical partitions those files had: some may lie beside small files of their own.
        published, second = _compact(replace(table, table=published), where)
        passes.append(second)
    return published, _result(passes, replace(table, table=published))


class _Pass(NamedTuple):
    """What was to do, and the files that were written for it."""

    work: _Work
    files: Sequence[WrittenFile]


def _compact(table: IcebergTable, where: str | None) -> tuple[Table, _Pass]:
    """Compact once; PyIceberg's table afterwards, and what was done."""
    for _ in range(_ATTEMPTS):
        now = replace(table, table=fresh(table.table))
        try:
            work = _Work(now, where)
            if not work.chosen and not work.manifests_need_order:
                return now.table, _Pass(work, ())
            job = work.job()
            files = work.write(job)
        except (PenstockError, OSError):
            if not has_moved_on(now.table, fresh(now.table)):
                raise
            continue  # files of a snapshot that expired are gone
        change = Change("replace", files, frozenset(work.chosen), now.version.snapshot_id, sort_manifests=True)
        published = attempt(now, job, files, change)
        if published is not None:
            return published, _Pass(work, files)
    message = f"{table.name} was changed by other writers during all of {_ATTEMPTS} attempts"
    raise ConflictError(message, hint="nothing was changed; compact when they are done, or less at once: where=…")


class _Work:
    """What there is to do in one version of a table."""

    def __init__(self, table: IcebergTable, where: str | None) -> None:
        self.table = table
        job = prepare(table, files=())
        self.layout, self.target = job.layout, job.target
        self.files = live_files(table, self.layout)
        self.sizes = logical_sizes(self.files)
        self.tasks = {task.path: unfiltered(task) for task in table.plan(where).files}
        self.chosen = self._choose([file for file in self.files if file.path in self.tasks])

    @property
    def manifests_need_order(self) -> bool:
        """Whether there are more manifests than the entries need."""
        lengths_by_spec: dict[int, list[int]] = defaultdict(list)
        for manifest in _manifests(self.table):
            lengths_by_spec[manifest.partition_spec_id].append(manifest.manifest_length)
        return any(len(lengths) > 1 + 2 * sum(lengths) // _MANIFEST for lengths in lengths_by_spec.values())

    @property
    def knows_all(self) -> bool:
        """Whether the logical partitions of all chosen files are known."""
        return all(file.logical is not None for file in self.files if file.path in self.chosen)

    def job(self) -> WriteJob:
        """How the chosen files are written: by what each logical partition has in the whole table."""
        return replace(prepare(self.table, files=self.files).again(), known_is_all=True)

    def write(self, job: WriteJob) -> list[WrittenFile]:
        """The rows of the chosen files as new files."""
        tasks = [task for path, task in self.tasks.items() if path in self.chosen]
        if not tasks:
            return []
        if sum(task.size or 0 for task in tasks) > LOCALLY:
            files: list[WrittenFile] = bridge.rewrite(job, self._only(tasks))
            return files
        reader = Reader(self.table.version, self.table.sources.io, self.table.context.timezone)
        names = [field.name for field in self.layout.schema.fields]
        read = Count(len(tasks), "file")
        with progress("reading and rewriting", read):
            return write_rows(job, read.each(reader.rows(tasks, names)), gathered=_GATHERED)

    @property
    def rewritten(self) -> list[LiveFile]:
        """The chosen files."""
        return [file for file in self.files if file.path in self.chosen]

    def _only(self, tasks: Sequence[FileTask]) -> ChosenFiles:
        table = self.table
        paths = tuple(task.path for task in tasks)
        return ChosenFiles(table.name, table.table, table.sources, table.snapshot, paths, context=table.context)

    def _choose(self, candidates: Sequence[LiveFile]) -> set[str]:
        chosen = {file.path for file in candidates if self._misplaced(file)}
        arriving = {tuple(home) for file in candidates if file.path in chosen for home in self._homes(file)}
        groups: dict[Tuple, list[LiveFile]] = defaultdict(list)
        for file in candidates:
            if file.path not in chosen:
                groups[(file.spec_id, file.partition)].append(file)
        for home, members in groups.items():
            small = [file for file in members if self._is_small(file)]
            if small and self._files_needed(small) < len(small) + (home in arriving):
                chosen |= {file.path for file in small}
            if self._is_shared(members[0]) and _spread(members) >= _SPREAD:
                chosen |= {file.path for file in members}
        return chosen

    def _misplaced(self, file: LiveFile) -> bool:
        if self.tasks[file.path].deletes or not self.layout.is_shredded_as_wanted(file.shredding):
            return True
        if self._is_shared(file):
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
        if not self._is_shared(file):
            return True
        recorded = sum(record_size(self.layout.logical_tuple(fine)) for fine in file.logical or ())
        return recorded < _SMALL * self.layout.record_bytes

    def _files_needed(self, files: Sequence[LiveFile]) -> int:
        """How many files the rows of some would lie in after a rewrite."""
        sizes = logical_sizes(files)
        totals = [self.sizes[fine] for fine in sizes]
        return len(assign(self.layout, list(sizes), list(sizes.values()), totals, self.target).slots)

    def _is_shared(self, file: LiveFile) -> bool:
        return self.layout.coarse is not None and file.spec_id == self.layout.coarse.spec_id

    def _homes(self, file: LiveFile) -> Iterable[tuple[int, Tuple]]:
        """The partitions that the rows of a file will go to, as far as that is known."""
        for fine in file.logical or ():
            if self.layout.coarse is not None and self.layout.shares(fine, self.sizes.get(fine, 0)):
                yield self.layout.coarse.spec_id, self.layout.coarse_tuple(fine)
            else:
                yield self.layout.fine.spec_id, fine


def _manifests(table: IcebergTable) -> list[ManifestFile]:
    manifests = table.sources.lists.of(table.version.snapshot, table.sources.io)
    return [m for m in manifests if int(m.content) == 0 and (m.has_added_files() or m.has_existing_files())]


def _result(passes: Sequence[_Pass], after: IcebergTable) -> Compaction:
    """What was done; a file that the first pass wrote and the second wrote again does not count."""
    written = {file.path: file for each in passes for file in each.files}
    rewritten = {file.path: file for each in passes for file in each.work.rewritten}
    between = written.keys() & rewritten.keys()
    gone = [file for path, file in rewritten.items() if path not in between]
    new = [file for path, file in written.items() if path not in between]
    last = passes[-1]
    files_after = len(last.work.files) - len(last.work.chosen) + len(last.files)
    homes = []
    for work, new_files in passes:
        before = _homes(((file.spec_id, file.logical or ()) for file in work.rewritten), work.layout)
        now = ((file.spec_id, fine_tuples(work.layout, [file])) for file in new_files)
        homes.append((before, _homes(now, work.layout)))
    return Compaction(
        files_before=files_after + len(gone) - len(new),
        files_after=files_after,
        rewritten=len(gone),
        written=len(new),
        bytes_rewritten=sum(file.bytes for file in gone),
        bytes_written=sum(file.bytes for file in new),
        promoted=sum(len(before.shared & now.own - before.own) for before, now in homes),
        folded=sum(len(before.own & now.shared - before.shared) for before, now in homes),
        manifests_before=len(_manifests(passes[0].work.table)),
        manifests_after=len(_manifests(after)),
    )


class _Homes(NamedTuple):
    """Logical partitions with files of their own, and those in shared files."""

    own: set[Tuple]
    shared: set[Tuple]


def _homes(files: Iterable[tuple[int, Iterable[Tuple]]], layout: Layout) -> _Homes:
    """Where logical partitions lie, by the spec of each file and the partitions in it."""
    homes = _Homes(set(), set())
    for spec_id, partitions in files:
        (homes.own if spec_id == layout.fine.spec_id else homes.shared).update(partitions)
    return homes


def _spread(files: Sequence[LiveFile]) -> float:
    """How many of the files a logical partition lies in, on average."""
    values = {fine for file in files for fine in file.logical or ()}
    return sum(len(file.logical or ()) for file in files) / max(1, len(values))
