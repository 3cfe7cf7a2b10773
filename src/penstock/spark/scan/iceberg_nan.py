"""The columns of a relation that hold no NaN in the files of a plan, by the counts in manifests.

Spark may skip row groups by Parquet's statistics of these columns, which leave NaN out (`SafeFilters.java`). Only
the columns of the plan's predicate have facts, and filters on others do not reach Parquet. A count that is unknown, for
example because a file was written before the column existed, means that there may be NaN.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pyiceberg.types import NestedField, StructType

from penstock.expr.tree import Column, Literal, Lookup
from penstock.prune.facts import Bounds, Term
from penstock.prune.judge import Judgement
from penstock.spark.scan.iceberg_columns import Shape
from penstock.spark.scan.iceberg_filters import MapKey

Path = tuple[str, ...]
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def columns_without_nan(shape: Shape, judgements: Sequence[Judgement]) -> list[str]:
    """The names of these columns as Spark's filters have them; one that Spark puts into backticks is left out."""
    known = [_without_nan(judgement) for judgement in judgements if len(judgement.kept)]
    free = frozenset.intersection(*known) if known else frozenset()
    paths = [names for term, names in _paths(shape) if term in free]
    return [".".join(names) for names in paths if all(_PLAIN.fullmatch(name) for name in names)]


def _without_nan(judgement: Judgement) -> frozenset[Path | MapKey]:
    bounds = [fact for fact in judgement.containers.facts if isinstance(fact, Bounds)]
    terms = [_name(fact.term) for fact in bounds if not fact.may_be_nan[judgement.kept].any()]
    return frozenset(term for term in terms if term is not None)


def _name(term: Term) -> Path | MapKey | None:
    if isinstance(term, Column):
        return term.path
    if isinstance(term, Lookup) and isinstance(term.container, Column) and isinstance(term.key, Literal):
        return MapKey(term.container.path, str(term.key.value))
    return None


def _paths(shape: Shape) -> Iterator[tuple[Path | MapKey, Path]]:
    """What the table calls its columns, and what the relation does."""
    for field in shape.fields:
        if len(shape.names(field)) == 1:
            yield from _inside(shape, field, (field.name,), shape.names(field))
    for sidecar in shape.sidecars:
        if len(shape.names(sidecar.field)) == 1:
            yield MapKey(sidecar.path, sidecar.key), shape.names(sidecar.field)


def _inside(shape: Shape, field: NestedField, path: Path, names: Path) -> Iterator[tuple[Path, Path]]:
    if not isinstance(field.field_type, StructType):
        yield path, names
        return
    for inner in field.field_type.fields:
        name = shape.naming.nested(inner, field.field_id, False)
        yield from _inside(shape, inner, (*path, inner.name), (*names, name))
