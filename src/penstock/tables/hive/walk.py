"""The walk: level by level, descending only into directories that the predicate, with the keys known so far, admits.

All directories of one level are judged together, as columns, by the same core that judges files. Paths are kept as they
were found and never rebuilt from values: `month=01` stays `month=01`. A directory whose text does not fit its declared
type has no known value: pruning keeps it, reading it is an error. What does not belong where it lies (a file beside
the directories of a level, a directory below the last one) is an error where it is listed; a pruned branch is not
listed. Files of zero bytes have no rows and are passed over, as in Spark.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import LayoutError, LimitError, PenstockWarning
from penstock.expr.kernels.cast import cast
from penstock.expr.kernels.physical import mask_of
from penstock.expr.tree import Call, Cast, Column, Expr, fold, rebuild, terms_of
from penstock.expr.types import type_name
from penstock.formats.file_format import FileFormat
from penstock.formats.format_registry import format_by_name, is_data_file, is_hidden
from penstock.progress import counted
from penstock.prune.containers import Containers
from penstock.prune.facts import Exact, Fact
from penstock.prune.judge import Judgement, Pruner
from penstock.prune.plan import Plan, count, make_plan
from penstock.prune.plan_report import Level
from penstock.prune.verdict import Reason, Verdict
from penstock.storage.entries import Entries, Entry
from penstock.storage.lister import Lister
from penstock.tables.file_metadata import metadata_facts
from penstock.tables.hive.directory_names import Candidates, Positions, candidates, check_utf8, parse_name

_UNTYPED = "untyped"
_MOVE = "move it out of the table's directory, or hide it by a name that begins with _"


@dataclass(frozen=True)
class Limits:
    """How far a plan may go before it warns or stops."""

    warn_partitions: int = 5_000
    max_partitions: int = 50_000


@dataclass
class Branch:
    """The directories of one level that are still in question: their paths, and the text of each column so far."""

    paths: list[str]
    columns: list[pa.Field] = field(default_factory=list)
    texts: list[pa.Array] = field(default_factory=list)

    def texts_of(self, positions: Sequence[int] | Positions) -> list[pa.Array]:
        return [column.take(pa.array(positions, pa.int64())) for column in self.texts]


class Walk:
    """One plan's walk over the directories of a table."""

    def __init__(
        self,
        columns: Sequence[pa.Field],
        pruner: Pruner,
        lister: Lister,
        limits: Limits,
        file_format: FileFormat | None = None,
        in_any_order: bool = False,
        marker: str | None = None,
    ) -> None:
        self.in_any_order = in_any_order  # whether levels may stand in another order in each branch
        self.file_format = file_format  # None: that of the first file whose name tells it
        self.columns, self.pruner, self.lister, self.limits, self.zone = columns, pruner, lister, limits, pruner.zone
        self.marker = marker  # a partition without this file is not complete, and none of its files is there yet
        self.written: list[int] = []  # when each file was last written, in milliseconds
        self.incomplete: dict[str, list[str]] = {}  # the files of partitions without their marker
        self.notes: list[str] = []  # of what may be wrong, which is warned of
        self.remarks: list[str] = []  # of what a report says besides
        self.levels: list[Judgement] = []

    def plan(self) -> Plan:
        """List what is needed and judge what was found."""
        start = time.perf_counter()
        branch = self._partitions()
        self._check_partitions(len(branch.paths))
        containers = self._files(branch)
        if self.lister.forbidden:
            first = self.lister.storage.shown(min(self.lister.forbidden))
            left_out = counted(len(self.lister.forbidden), "directory")
            self.notes.append(f"{left_out} left out, which may not be read: {first}")
        files = judge(self.pruner, containers)
        if self.notes:
            warnings.warn("; ".join(self.notes), PenstockWarning, stacklevel=3)
        seconds, calls, notes = time.perf_counter() - start, self.lister.calls, [*self.notes, *self.remarks]
        return make_plan(self.pruner, [files], seconds, outer=[self._counts()], list_calls=calls, notes=notes)

    def _partitions(self) -> Branch:
        """The partitions that are kept."""
        branches = [Branch([self.lister.storage.path])]
        for _ in self.columns:
            branches = [below for branch in branches for below in self._descend(branch)]
        return self._united(branches)

    def _counts(self) -> Level:
        """The counts of what was judged before the files."""
        return count(self.levels, "directories")

    def _descend(self, parents: Branch) -> list[Branch]:
        """The directories below that the predicate admits, by the column that they are partitions of."""
        listings = self.lister.list_all(parents.paths)
        left = [column for column in self.columns if column not in parents.columns]
        if not self.in_any_order:
            return [self._level(parents, listings, left[0], [])]
        levels = [self._level(parents, listings, each, [c.name for c in left if c is not each]) for each in left]
        return [level for level in levels if level.paths]

    def _united(self, branches: Sequence[Branch]) -> Branch:
        """All directories of the last level, with the texts in the order of the columns."""
        if len(branches) == 1:
            (branch,) = branches
            texts = [branch.texts[branch.columns.index(column)] for column in self.columns]
            return Branch(branch.paths, list(self.columns), texts)
        parts = [self._united([branch]) for branch in branches]
        columns = [pa.concat_arrays([p.texts[i] for p in parts]) for i in range(len(self.columns))] if parts else []
        none = [pa.nulls(0, pa.string())] * len(self.columns)
        return Branch([path for part in parts for path in part.paths], list(self.columns), columns or none)

    def _level(self, parents: Branch, listings: Sequence[Entries], column: pa.Field, others: Sequence[str]) -> Branch:
        """The partitions of a column; those of other columns are none of its business."""
        look = partial(self._partition_text, column, {name.lower() for name in others})
        partitions = candidates(parents.paths, listings, column.name, look)
        if others and not partitions.count:
            return Branch([])
        judgement = self._judge_level(partitions, parents, column)
        places = (parents.paths[owner] for owner in partitions.owners[judgement.kept])
        kept = zip(judgement.kept, places, strict=True)
        files = [i for i, where in kept if self._is_empty_file(partitions.entry(i), where, column)]
        if files:
            partitions = partitions.take(~np.isin(np.arange(partitions.count), files))
            judgement = self._judge_level(partitions, parents, column)
        self._note_type(partitions, judgement, column)
        self.levels.append(judgement)
        order = partitions.in_order(judgement.kept)
        texts = [*parents.texts_of(partitions.owners[order]), partitions.texts.take(pa.array(order, pa.int64()))]
        return Branch([partitions.path(i) for i in order], [*parents.columns, column], texts)

    def _judge_level(self, partitions: Candidates, parents: Branch, column: pa.Field) -> Judgement:
        known = [*parents.columns, column]
        facts = self._facts(known, [*parents.texts_of(partitions.owners), partitions.texts])
        return judge(self._pruner_at(known), Containers(partitions.count, facts))

    def _pruner_at(self, known: Sequence[pa.Field]) -> Pruner:
        """The predicate without what only the types of deeper levels say: a directory there may not fit its type."""
        below = [c for c in self.columns if c not in known and c.type != pa.string()]
        deeper = [Column((c.name,), c.type) for c in below]
        hidden = [term for term in terms_of(self.pruner.predicate) if term in deeper]
        return Pruner(_without(self.pruner.predicate, hidden), self.zone) if hidden else self.pruner

    def _partition_text(self, column: pa.Field, others: Set[str], entry: Entry, where: str) -> tuple[str | None] | None:
        """The text of a partition directory in a tuple, or None for an empty file and what others look at."""
        if self._is_empty_file(entry, where, column):
            return None
        parsed = parse_name(entry.name, self.lister.storage.url_of(where))
        place = self.lister.storage.url_of(f"{where}/{entry.name}")
        if parsed is None:
            raise LayoutError(f"{place} is not a partition directory of {column.name!r}", hint=_MOVE)
        if parsed[0].lower() in others:
            return None
        if parsed[0].lower() != column.name.lower():
            hint = "declare the partition columns in the order of the directories, or move the directory away"
            raise LayoutError(f"{place} is a partition of {parsed[0]!r}, expected {column.name!r}", hint=hint)
        if parsed[1] is None and not column.nullable:
            raise LayoutError(f"{place} stands for NULL, but {column.name} is declared NOT NULL")
        return (parsed[1],)

    def _is_empty_file(self, entry: Entry, where: str, column: pa.Field) -> bool:
        """Whether an entry of a level is a file without rows; a file with rows is an error, for no value is known."""
        if not entry.is_directory and entry.size and is_data_file(entry.name):
            place = self.lister.storage.url_of(f"{where}/{entry.name}")
            raise LayoutError(f"{place} is a file beside the partition directories of {column.name!r}", hint=_MOVE)
        return not entry.is_directory

    def _note_type(self, partitions: Candidates, judgement: Judgement, column: pa.Field) -> None:
        """Record a declared type that not one directory of a level fits."""
        fact = next(f for f in judgement.containers.facts if isinstance(f, Exact) and f.name == column.name)
        if fact.known is None or fact.known.all() or (fact.known & mask_of(partitions.texts.is_valid())).any():
            return
        kind, example = type_name(column.type), partitions.name(int(np.argmin(fact.known)))
        problem = f"no directory of {column.name} can be read as {kind}, for example {example!r}"
        self.notes.append(f"{self.lister.storage.url}: {problem}; declare another type")

    def _facts(self, columns: Sequence[pa.Field], texts: Sequence[pa.Array]) -> list[Fact]:
        facts: list[Fact] = []
        for column, known_texts in zip(columns, texts, strict=True):
            term = Column((column.name,), column.type)
            if column.type == pa.string():
                facts.append(Exact(term, known_texts.dictionary_encode(), name=column.name))
            else:
                read = cast(known_texts, column.type, self.zone)
                known = None if read.failed is None else ~read.failed
                facts.append(Exact(term, read.values, known, name=column.name))
        return facts

    def _check_partitions(self, number: int) -> None:
        if number > self.limits.max_partitions:
            hint = "filter on a partition column, or raise max_partitions"
            raise LimitError(f"{self.lister.storage.url}: {counted(number, 'partition')} match", hint=hint)
        if number > self.limits.warn_partitions:
            way = "filter on a partition column, or raise warn_partitions"
            message = f"{self.lister.storage.url}: {number:,} partitions match; {way}"
            warnings.warn(message, PenstockWarning, stacklevel=5)

    def _files(self, branch: Branch) -> Containers:
        paths, owners, sizes, times = [], [], [], []
        with_suffixes: dict[tuple[str, ...], str] = {}  # a file for each pair of suffixes
        for owner, entries in enumerate(self.lister.list_all(branch.paths)):
            if self.marker is not None and self.marker not in entries.names:
                self.incomplete[branch.paths[owner]] = [name for name in entries.names if is_data_file(name)]
                continue
            for entry in (entries.entry(i) for i in entries.in_order() if not is_hidden(entries.names[i])):
                if entry.is_directory:
                    self._pass_directory(entry, branch.paths[owner])
                    continue
                if not entry.size or not is_data_file(entry.name) or entry.name == self.marker:
                    continue
                check_utf8(entry.name, self.lister.storage.url_of(branch.paths[owner]))
                paths.append(f"{branch.paths[owner]}/{entry.name}")
                with_suffixes.setdefault(tuple(entry.name.rsplit(".", 2)[1:]), paths[-1])
                owners.append(owner)
                sizes.append(entry.size)
                times.append(entry.modified_ns // 1_000_000 * 1_000)
                self.written.append(entry.modified_ns // 1_000_000)
        self._check_format(with_suffixes.values())
        names = [self.lister.storage.url_of(path) for path in paths]
        file_sizes = pa.array(sizes, pa.int64())
        known = metadata_facts(names, file_sizes, pa.array(times, pa.int64()))
        facts = [*self._facts(branch.columns, branch.texts_of(owners)), *known]
        return Containers(len(paths), facts, pa.array(names, pa.string()), None, file_sizes)

    def _pass_directory(self, entry: Entry, where: str) -> None:
        """What becomes of a directory among the files of a partition: here an error."""
        raise self._too_deep(entry, where)

    def _check_format(self, paths: Iterable[str]) -> None:
        """Refuse files whose names tell another format than that of the layout."""
        expected, other = self.file_format, "the layout"
        for path in paths:
            file_format, place = format_by_name(path), self.lister.storage.url_of(path)
            if file_format is None or file_format == expected:  # a feed in another process has a copy
                continue
            if expected is not None:
                hint = f"move it out of the table's directory, or open its files alone with format={file_format.name!r}"
                raise LayoutError(f"{place} is {file_format.title}, and {other} is {expected.title}", hint=hint)
            expected, other = file_format, place

    def _too_deep(self, entry: Entry, where: str) -> LayoutError:
        place = self.lister.storage.url_of(f"{where}/{entry.name}")
        parsed = parse_name(entry.name, self.lister.storage.url_of(where))
        if not self.columns:
            hint = "declare the partition columns, or move the directory away"
            return LayoutError(f"{place} is a directory in a layout without partition columns", hint=hint)
        last = self.columns[-1].name
        if parsed is None:
            return LayoutError(f"{place} is a directory inside a partition of {last!r}, expected files", hint=_MOVE)
        hint = f"add {parsed[0]} to the declared partition columns, or move the directory away"
        return LayoutError(f"{place} is a partition of {parsed[0]!r} below the last column {last!r}", hint=hint)


def judge(pruner: Pruner, containers: Containers) -> Judgement:
    """As the core judges, but what cannot be typed is not skipped for what holds of its type.

    `k = 999` is false of every tinyint, and so of every typed directory; `k=999` is none.
    """
    judgement = pruner.judge(containers)
    partly = [f for f in containers.facts if isinstance(f, Exact) and f.name is not None and f.known is not None]
    if not partly:
        return judgement
    untyped = ~np.logical_and.reduce([f.known for f in partly if f.known is not None])
    opaque = Pruner(_without(pruner.predicate, [f.term for f in partly]), pruner.zone).judge(containers)
    back = untyped & (judgement.verdicts == Verdict.SKIP) & (opaque.verdicts != Verdict.SKIP)
    return replace(
        judgement,
        verdicts=np.where(back, np.int8(Verdict.KEEP), judgement.verdicts),
        codes=np.where(back, np.int32(len(judgement.reasons)), judgement.codes),
        reasons=(*judgement.reasons, Reason("a directory that cannot be typed")),
    )


def _without(predicate: Expr, terms: Sequence[Any]) -> Expr:
    """The predicate with nothing known of some columns and what is computed from them, not even their types."""

    def visit(node: Expr, below: tuple[Expr, ...]) -> Expr:
        computed = isinstance(node, Call | Cast) and any(isinstance(b, Call) and b.name == _UNTYPED for b in below)
        return Call(_UNTYPED, (node,)) if computed or node in terms else rebuild(node, below)

    return fold(predicate, visit)


def check_readable(plan: Plan, columns: Sequence[pa.Field]) -> None:
    """Raise for a kept directory that cannot be read as declared: it is never silently left out."""
    for judgement in plan.judgements:
        facts: dict[str | None, Any] = {f.name: f for f in judgement.containers.facts if isinstance(f, Exact)}
        for column in columns:
            known = facts[column.name].known
            bad = [] if known is None else [i for i in judgement.kept if not known[i]]
            if bad:
                path = str(judgement.containers.names[int(bad[0])])  # type: ignore[index]
                hint = "declare it as string, or fix the directory"
                kind = type_name(column.type)
                raise LayoutError(f"partition column {column.name!r} in {path} cannot be read as {kind}", hint=hint)
