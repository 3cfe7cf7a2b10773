"""Shared files that could not be pruned because nothing says which logical partitions they hold.

Other engines' writers drop the record when they rewrite manifests. Such a file is kept for every value of the logical
columns; a plan says so, and what mends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from penstock.expr.tree import Column, Expr, walk
from penstock.progress import counted
from penstock.prune.facts import Tuples
from penstock.prune.judge import Judgement
from penstock.prune.verdict import Verdict
from penstock.tables.iceberg.metadata.version import Version

_SHOWN = 3


def unrecorded_note(version: Version, predicate: Expr, judgements: Sequence[Judgement]) -> str | None:
    """What to say of such files among those that a plan kept; nothing where there are none."""
    source_ids = {version.columns.ids[node.path][0] for node in walk(predicate)
             if isinstance(node, Column) and node.path in version.columns.ids}  # fmt: skip
    coarser = {i for i, ids in _coarser(version).items() if ids & source_ids}
    paths = [path for each in judgements if each.containers.spec_id in coarser for path in _unrecorded(each)]
    if not paths:
        return None
    listed = ", ".join(paths[:_SHOWN]) + (", …" if len(paths) > _SHOWN else "")
    files = f"{counted(len(paths), 'shared file')} could not be pruned, because"
    missing = "its record of logical partitions is missing" if len(paths) == 1 else "their records are missing"
    return f"{files} {missing}: {listed}; table.compact(), or penstock compact, writes it"


def _coarser(version: Version) -> dict[int, set[int]]:
    """The specs of shared files, each with the logical columns that the default spec has besides."""
    default = version.specs[version.metadata.default_spec_id].sources
    sources = {}
    for spec_id, spec in version.specs.items():
        more = default - spec.sources
        if more and default > spec.sources and all(name == "identity" for _, name in more):
            sources[spec_id] = {source for source, _ in more}
    return sources


def _unrecorded(judgement: Judgement) -> Iterator[str]:
    """The files of which some rows may match, and nothing is recorded."""
    known = np.zeros(judgement.containers.count, np.bool_)
    for fact in judgement.containers.facts:
        if isinstance(fact, Tuples):
            known |= fact.complete
    assert judgement.containers.names is not None
    for i in np.flatnonzero((judgement.verdicts == Verdict.KEEP) & ~known).tolist():
        yield judgement.containers.names[i].as_py()
