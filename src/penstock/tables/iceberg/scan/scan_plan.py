"""The plan of a scan: manifest list → manifests by their summaries → files by their own spec, bounds and counts.

Every manifest belongs to one spec, and so does every file in it: a predicate is judged against each spec's own fields,
and a tuple is never looked at without its spec. Manifests that cannot match are not opened.

With a limit, planning stops as soon as files that match whole, and lose no row to a delete, have enough rows.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile

from penstock.errors import LakeError
from penstock.expr.kernels.physical import mask_of
from penstock.expr.tree import Column, Expr, Literal, Lookup, terms_of, walk
from penstock.formats.format_registry import DEFAULT, TITLES, iceberg_format
from penstock.maps.shredded_file import ShreddedFile
from penstock.prune.judge import Judgement, Pruner
from penstock.prune.plan import Plan, count, make_plan
from penstock.prune.plan_report import Level, ServedKey
from penstock.prune.verdict import Reason, Verdict
from penstock.tables.description import Numbers, integers
from penstock.tables.iceberg.manifest.file_batch import Batches, FileBatch, HotKey
from penstock.tables.iceberg.manifest.manifest_cache import ManifestCache
from penstock.tables.iceberg.manifest.manifest_list import ManifestLists, files_in, rows_in
from penstock.tables.iceberg.metadata.version import Version
from penstock.tables.iceberg.scan.delete_files import Deletes

_DATA, _DELETES = 0, 1
_ADDED = 1
NOT_NEEDED = Reason("limit", "enough rows without it")
NOT_CHOSEN = Reason("chosen", "not among the files that were asked for")
NOT_NEW = Reason("snapshot", "was there before")


@dataclass(frozen=True)
class Sources:
    """Where metadata comes from, and where it is kept between plans."""

    io: FileIO
    manifests: ManifestCache
    lists: ManifestLists
    batches: Batches


def plan_files(
    version: Version,
    sources: Sources,
    pruner: Pruner,
    limit: int | None = None,
    also: Sequence[Column] = (),
    keys: Sequence[Lookup] = (),
) -> Plan:
    """Which files of a version may hold rows that match; of the columns `also`, bounds are wanted too.

    `keys` of maps are asked for besides those in the predicate.
    """
    start = time.perf_counter()
    data = _manifests(version, sources, _DATA)
    levels, kept = _judge_manifests(pruner, version, sources.lists, data)
    deletes = Deletes(delete_batches(version, sources) if kept else ())
    judgements: list[Judgement] = []
    for group in [kept] if limit is None else [[manifest] for manifest in kept]:  # which may stop early
        judged = _judge_files(pruner, version, sources, group, also)
        judgements += [_with_deletes(batch, judgement, deletes) for batch, judgement in judged]
        if limit is not None and sum(_certain_files(each)[1].sum() for each in judgements) >= limit:
            judgements = _limited(judgements, limit)
            break
    files = _file_level(judgements, data)
    served = served_keys(version, [*terms_of(pruner.predicate), *keys], judgements)
    seconds, manifests = time.perf_counter() - start, [count(levels, "manifests")]
    return make_plan(pruner, judgements, seconds, outer=manifests, files=files, keys=served)


def plan_added(version: Version, sources: Sources, pruner: Pruner) -> Plan:
    """Which of the files that a snapshot added may hold rows that match, with the deletes that came with them."""
    start = time.perf_counter()
    new = [m for m in _manifests(version, sources, _DATA) if _is_of(m, version) and m.has_added_files()]
    levels, kept = _judge_manifests(pruner, version, sources.lists, new)
    own = [m for m in _manifests(version, sources, _DELETES) if _is_of(m, version)] if kept else []
    deletes = Deletes(_batches(version, sources, own))
    judgements = []
    for batch, judgement in _judge_files(pruner, version, sources, kept):
        added = pc.and_(
            pc.equal(batch.column("status"), _ADDED), pc.equal(batch.column("snapshot_id"), version.snapshot_id)
        )
        places = np.flatnonzero(mask_of(added))
        new_ones = _dropped(judgement, np.setdiff1d(judgement.kept, places), NOT_NEW)
        judgements.append(_with_deletes(batch, new_ones, deletes))
    level = count(judgements)
    skipped = {reason: number for reason, number in level.skipped.items() if reason != str(NOT_NEW)}
    total = max(level.kept, sum(m.added_files_count or 0 for m in new))
    files = replace(level, total=total, skipped=skipped)
    seconds, manifests = time.perf_counter() - start, [count(levels, "manifests")]
    return make_plan(pruner, judgements, seconds, outer=manifests, files=files)


def removes_rows(version: Version, sources: Sources) -> bool:
    """Whether a snapshot takes rows away: data files, or rows in them. What is not said counts as so."""
    own = [m for m in sources.lists.of(version.snapshot, sources.io) if _is_of(m, version)]
    return any(m.has_added_files() if int(m.content) == _DELETES else m.deleted_files_count != 0 for m in own)


def _is_of(manifest: ManifestFile, version: Version) -> bool:
    """Whether a snapshot wrote the manifest."""
    return bool(manifest.added_snapshot_id == version.snapshot_id)


def judge_files(version: Version, sources: Sources, pruner: Pruner) -> list[tuple[FileBatch, Judgement]]:
    """All files in manifests that can match, judged; deletes do not matter here."""
    _, kept = _judge_manifests(pruner, version, sources.lists, _manifests(version, sources, _DATA))
    return _judge_files(pruner, version, sources, kept)


def data_batches(version: Version, sources: Sources) -> list[FileBatch]:
    """All data files."""
    return _batches(version, sources, _manifests(version, sources, _DATA))


def delete_batches(version: Version, sources: Sources) -> list[FileBatch]:
    """All delete files."""
    return _batches(version, sources, _manifests(version, sources, _DELETES))


def _manifests(version: Version, sources: Sources, content: int) -> list[ManifestFile]:
    return [m for m in sources.lists.of(version.snapshot, sources.io) if int(m.content) == content]


def _judge_manifests(
    pruner: Pruner, version: Version, lists: ManifestLists, manifests: Sequence[ManifestFile]
) -> tuple[list[Judgement], list[ManifestFile]]:
    """The verdicts on manifests, spec by spec, and those that are kept."""
    levels, kept = [], []
    for spec_id in dict.fromkeys(m.partition_spec_id for m in manifests):
        members = [m for m in manifests if m.partition_spec_id == spec_id]
        judgement = pruner.judge(lists.containers(members, version.specs[spec_id]))
        levels.append(judgement)
        kept += [members[i] for i in judgement.kept]
    return levels, kept


def _judge_files(
    pruner: Pruner, version: Version, sources: Sources, manifests: Sequence[ManifestFile], also: Sequence[Column] = ()
) -> list[tuple[FileBatch, Judgement]]:
    batches = _batches(version, sources, manifests)
    judged = list(zip(batches, judge_batches(pruner, version, batches, also), strict=True))
    for batch, judgement in judged:
        _check_formats(batch, judgement)
    return judged


def judge_batches(
    pruner: Pruner, version: Version, batches: Sequence[FileBatch], also: Sequence[Column] = ()
) -> list[Judgement]:
    """The files of batches, judged by what their manifests say of the columns and keys that matter."""
    used = [*also, *(node for node in walk(pruner.predicate) if isinstance(node, Column))]
    keys = _hot_keys(version, pruner.predicate)
    return [pruner.judge(batch.containers(version.columns, used, keys)) for batch in batches]


def _hot_keys(version: Version, predicate: Expr) -> list[HotKey]:
    """The keys of maps that a predicate asks about and that have sidecars."""
    hot = []
    for term in terms_of(predicate) if version.sidecars else ():
        if isinstance(term, Lookup) and isinstance(term.container, Column):
            field_id = version.columns.ids.get(term.container.path, (None, None))[0]
            key = term.key.value if isinstance(term.key, Literal) else None
            hot += [HotKey(term, s) for s in version.sidecars if (s.source, s.key) == (field_id, key)]
    return hot


def served_keys(version: Version, terms: Sequence[Expr], judgements: Sequence[Judgement]) -> list[ServedKey]:
    """Where the keys of shredded maps that are asked for are read from, in how many of the kept files."""
    lookups = [term for term in dict.fromkeys(terms) if isinstance(term, Lookup)] if version.sidecars else []
    if not lookups:
        return []
    texts: Counter[str | None] = Counter()
    for judgement in judgements:
        assert judgement.containers.shredding is not None
        texts.update(judgement.containers.shredding.take(pa.array(judgement.kept)).to_pylist())
    files = [(version.shredded(text), number) for text, number in texts.items()]
    known = version.shredded(None)
    return [_served(term, files) for term in lookups if known.has(term)]


def _served(term: Lookup, files: Sequence[tuple[ShreddedFile, int]]) -> ServedKey:
    counts: Counter[str] = Counter()
    for file, number in files:
        sidecar, needs_map = file.for_key(term)
        counts["map" if sidecar is None else "both" if needs_map else "sidecar"] += number
    return ServedKey(str(term), **counts)


def _with_deletes(batch: FileBatch, judgement: Judgement, deletes: Deletes) -> Judgement:
    applied = deletes.of(batch, judgement.kept.tolist())
    if not applied:
        return judgement
    return replace(judgement, containers=replace(judgement.containers, deletes=applied))


def _check_formats(batch: FileBatch, judgement: Judgement) -> None:
    if batch.is_readable:
        return
    kinds = batch.column("file_format")
    for i in judgement.kept.tolist():
        if iceberg_format(kinds[i].as_py()) is None:
            message = f"{batch.column('file_path')[i]} is a file in {kinds[i]}, and only {TITLES} are supported"
            raise LakeError(message, hint=f"rewrite the table's data files as {DEFAULT.title}, or filter them out")


def _batches(version: Version, sources: Sources, manifests: Sequence[ManifestFile]) -> list[FileBatch]:
    entries = sources.manifests.many(manifests, sources.io)
    batches = []
    for spec_id in dict.fromkeys(m.partition_spec_id for m in manifests):
        members = [e for m, e in zip(manifests, entries, strict=True) if m.partition_spec_id == spec_id]
        batches += sources.batches.of(version.specs[spec_id], members)
    return batches


def only(plan: Plan, paths: Sequence[str]) -> Plan:
    """A plan without any file but these."""
    chosen = pa.array(sorted(paths), pa.string())
    judgements = []
    for judgement in plan.judgements:
        wanted = pc.is_in(judgement.containers.names, value_set=chosen).to_numpy(zero_copy_only=False)
        judgements.append(_dropped(judgement, np.setdiff1d(judgement.kept, np.flatnonzero(wanted)), NOT_CHOSEN))
    return replace(plan, judgements=judgements)


def _dropped(judgement: Judgement, places: npt.NDArray[np.intp], reason: Reason) -> Judgement:
    """A judgement in which some files are skipped after all."""
    verdicts, codes = judgement.verdicts.copy(), judgement.codes.copy()
    verdicts[places], codes[places] = np.int8(Verdict.SKIP), len(judgement.reasons)
    return replace(judgement, verdicts=verdicts, codes=codes, reasons=(*judgement.reasons, reason))


def _certain_files(judgement: Judgement) -> tuple[Numbers, Numbers]:
    """The files that match whole and have no deletes, and the rows of each."""
    containers = judgement.containers
    assert containers.rows is not None
    certain = (judgement.verdicts == Verdict.KEEP_WHOLE) & mask_of(pc.is_valid(containers.rows))
    certain[list(containers.deletes)] = False
    places = np.flatnonzero(certain)
    return places, integers(containers.rows, containers.count, 0)[places]


def _limited(judgements: Sequence[Judgement], limit: int) -> list[Judgement]:
    """Only as many of the certain files as have enough rows; the others are left out."""
    limited, missing = [], limit
    for judgement in judgements:
        certain, rows = _certain_files(judgement)
        is_needed = np.cumsum(rows) - rows < missing
        missing -= int(rows[is_needed].sum())
        limited.append(_dropped(judgement, np.setdiff1d(judgement.kept, certain[is_needed]), NOT_NEEDED))
    return limited


def _file_level(judgements: Sequence[Judgement], data: Sequence[ManifestFile]) -> Level:
    """The counts of files, those in manifests that were not opened among them."""
    level = count(judgements)
    total = sum(files_in(m) or 0 for m in data)
    unopened = max(0, total - level.total)
    if not unopened:
        return level
    rows = sum(rows_in(m) or 0 for m in data)
    skipped = {**level.skipped, "manifests that were not opened": unopened}
    rows_kept, bytes_kept = level.rows_kept or 0, level.bytes_kept or 0
    return replace(level, total=total, rows=rows, rows_kept=rows_kept, bytes_kept=bytes_kept, skipped=skipped)
