"""A map column out of a residual map and the columns of its hot keys, which Spark reads only as far as a query needs.

`headers['k']` is answered from the sidecar of `k` alone where its state says that this is enough, and the map is put
together only for those who want all of it. The states are explained in `jvm/ShreddedMap.java`; a sidecar of which
nothing is known is `MAYBE`, which is right whoever wrote the file. One that cannot be trusted is not given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from penstock.expr.types import type_name
from penstock.spark.session.java_classes import call
from penstock.spark.session.session import gateway_of, is_connect

Path = tuple[str, ...]
Sidecar = tuple[str, "Column", str]  # key, column of the map's value type, and state
STATES = ("MAYBE", "VALUE", "EXACT", "MIRROR_VALUE", "MIRROR_EXACT")


def shredded_map(spark: SparkSession, residual: Column, sidecars: Sequence[Sidecar]) -> Column:
    """The map of a residual and sidecars, see `Sidecar`."""
    if not sidecars:
        return residual
    gateway = gateway_of(spark)
    keys, columns, states = (gateway.jvm.java.util.ArrayList() for _ in range(3))
    for key, column, state in sidecars:
        if state not in STATES:
            raise ValueError(f"the state of the sidecar of {key!r} is {state!r}; it must be one of {', '.join(STATES)}")
        keys.add(key)
        columns.add(_java(column))
        states.add(state)
    return Column(call(gateway, "ShreddedMap", "column", _java(residual), keys, columns, states))


def _merged(residual: Column, kind: pa.DataType, sidecars: Sequence[Sidecar]) -> Column:
    """The map by Spark's own functions, whoever wrote its parts: slow, and right everywhere."""
    name = type_name(kind)
    empty = F.create_map().cast(name)
    filled = [(key, value, value.isNotNull()) for key, value, _ in sidecars]
    rest = F.map_filter(
        F.coalesce(residual, empty), lambda k, _: ~reduce(or_, [(k == F.lit(key)) & has for key, _, has in filled])
    )
    own = [F.when(has, F.create_map(F.lit(key), value).cast(name)).otherwise(empty) for key, value, has in filled]
    return F.when(reduce(or_, [has for _, _, has in filled], residual.isNotNull()), F.map_concat(rest, *own))


def with_maps(
    spark: SparkSession, column: Column, kind: pa.DataType, path: Path, sidecars: Mapping[Path, Sequence[Sidecar]]
) -> Column:
    """A column whose shredded maps are whole; `sidecars` are those of each map, by its path.

    On Spark Connect the server has no rule of ours, so maps are put together for every query.
    """
    if path in sidecars:
        own = sidecars[path]
        return _merged(column, kind, own) if is_connect(spark) else shredded_map(spark, column, own)
    if not any(other[: len(path)] == path for other in sidecars):
        return column
    inside = [with_maps(spark, column.getField(f.name), f.type, (*path, f.name), sidecars).alias(f.name) for f in kind]
    return F.call_function("if", column.isNull(), F.lit(None), F.struct(*inside))


def rule_failures(spark: SparkSession) -> tuple[int, str]:
    """How often the rule that answers keys from sidecars has failed in this JVM, and how it did last."""
    gateway = gateway_of(spark)
    return int(call(gateway, "HotKeys", "failures")), str(call(gateway, "HotKeys", "lastFailure"))


def _java(column: Column) -> Any:
    return column._jc  # type: ignore[attr-defined,unused-ignore]
