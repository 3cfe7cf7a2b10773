"""A map column out of a residual map and the columns of its hot keys, which Spark reads only as far as a query needs.

`headers['k']` is answered from the sidecar of `k` alone where its state says that this is enough, and the map is put
together only for those who want all of it. The states are explained in `jvm/ShreddedMap.java`; a sidecar of which
nothing is known is `MAYBE`, which is right whoever wrote the file. One that cannot be trusted is not given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.spark.session.java_classes import call
from penstock.spark.session.session import gateway_of

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

STATES = ("MAYBE", "VALUE", "EXACT", "MIRROR_VALUE", "MIRROR_EXACT")


def shredded_map(spark: SparkSession, residual: Column, sidecars: Sequence[tuple[str, Column, str]]) -> Column:
    """The map of a residual and sidecars, each given as key, column of the map's value type, and state."""
    from pyspark.sql import Column

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


def rule_failures(spark: SparkSession) -> tuple[int, str]:
    """How often the rule that answers keys from sidecars has failed in this JVM, and how it did last."""
    gateway = gateway_of(spark)
    return int(call(gateway, "HotKeys", "failures")), str(call(gateway, "HotKeys", "lastFailure"))


def _java(column: Column) -> Any:
    return column._jc  # type: ignore[attr-defined,unused-ignore]
