"""How long does it take to judge 1,000,000 files, and how does that compare with PyIceberg's evaluators?

    make bench ONLY=plan_million_containers

The files have two partition columns (`dt`, `app`), bounds on three columns (`ts`, `user_id`, `url`), and every tenth
file has logical tuples over `app` instead of an `app` partition. Each predicate is judged on all files; the answers
are checked against PyIceberg on a sample, and against a direct NumPy computation on all files. The peer evaluates the
same predicate on the same files of the sample in the same run: `inclusive_projection` on the partition, then
`_InclusiveMetricsEvaluator`.

*cold* is the first plan after the facts were built (strings get ranked, dictionaries encoded), *warm* the best of five
more. The text is parsed and bound outside of the clock, for both; compiling the bound predicate is inside, for both.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.expr.bind import bind_text
from penstock.expr.schema import as_schema
from penstock.expr.tree import Column
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Exact, Fact, Tuples
from penstock.prune.judge import Judgement, Pruner
from penstock.prune.verdict import Verdict

FILES, SAMPLE, REPEATS = 1_000_000, 2_000, 5
DAYS, APPS = 365, 2_000
TARGET = 300
DDL = "dt date, app string, ts timestamp, user_id bigint, url string"
SCHEMA = as_schema(DDL)
DAY0 = 20454  # 2026-01-01
DAY_MICROS = 86_400_000_000
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Data:
    """The columns that the facts are made of, kept for checking the answers."""

    day: Array
    app: Array
    shared: Array
    tuples: Array
    offsets: Array
    ts: tuple[Array, Array]
    user: tuple[Array, Array]
    url: tuple[Array, Array]


def term(name: str) -> Column:
    """A column of the schema."""
    return Column((name,), SCHEMA.field(name).type)


def generate() -> Data:
    """A million files: a day and an app each, bounds inside the day, users and urls in narrow ranges."""
    random = np.random.default_rng(7)
    day = np.sort(random.integers(0, DAYS, FILES))
    app = random.integers(0, APPS, FILES)
    shared = np.arange(FILES) % 10 == 0
    sizes = np.where(shared, random.integers(2, 6, FILES), 0)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    tuples = random.integers(0, APPS, int(offsets[-1]))
    start = (day + DAY0) * DAY_MICROS + random.integers(0, DAY_MICROS // 2, FILES)
    end = start + random.integers(0, DAY_MICROS // 2, FILES)
    user = random.integers(0, 10**9, FILES)
    url = random.integers(0, 10**7, FILES)
    spread = random.integers(0, 2_000, FILES)
    return Data(day, app, shared, tuples, offsets, (start, end), (user, user + 10_000), (url, url + spread))


def app_names() -> pa.Array:
    """The apps in the order of their numbers."""
    return pa.array([f"app-{i:04d}" for i in range(APPS)])


def urls(numbers: Array) -> pa.Array:
    """The urls of numbers; their text order is the order of the numbers."""
    return pa.array([f"/u/{n:08d}" for n in numbers])


def containers(data: Data) -> Containers:
    """The facts, as a table would hold them after decoding its manifests."""
    app = app_names()
    partition = pa.DictionaryArray.from_arrays(pa.array(data.app.astype(np.int32)), app)
    stamp = SCHEMA.field("ts").type
    zero = pa.array(np.zeros(FILES, np.int64))
    facts: list[Fact] = [
        Exact(term("dt"), pa.array((data.day + DAY0).astype(np.int32)).view(pa.date32())),
        Exact(term("app"), partition, known=~data.shared),
        Tuples((term("app"),), (app.take(pa.array(data.tuples)),), data.offsets, data.shared),
        Bounds(term("ts"), pa.array(data.ts[0]).view(stamp), pa.array(data.ts[1]).view(stamp), null_count=zero),
        Bounds(term("user_id"), pa.array(data.user[0]), pa.array(data.user[1]), null_count=zero),
        Bounds(term("url"), urls(data.url[0]), urls(data.url[1]), null_count=zero),
    ]
    return Containers(FILES, facts)


def has_app(data: Data, wanted: Array) -> Array:
    """Which files may hold one of the wanted apps (a mask over app numbers), by partition or by tuples."""
    found = np.asarray(wanted[data.app])
    hits = np.add.reduceat(np.append(wanted[data.tuples], False), np.minimum(data.offsets[:-1], len(data.tuples)))
    found[data.shared] = hits[data.shared] > 0
    return found


@dataclass(frozen=True)
class Query:
    """A predicate, the same for PyIceberg (which wants dates and timestamps as text), and its answer found directly."""

    name: str
    where: str
    answer: Callable[[Data], Array]
    peer: str = ""

    @property
    def peer_text(self) -> str:
        """The predicate in PyIceberg's own language."""
        return self.peer or self.where


def one_app(number: int) -> Array:
    """A mask over app numbers."""
    return np.asarray(np.arange(APPS) == number)


def in_points(data: Data, points: Array) -> Array:
    """Which files have a user range with one of the points in it."""
    i = np.searchsorted(points, data.user[0])
    return np.asarray((i < len(points)) & (points[np.minimum(i, len(points) - 1)] <= data.user[1]))


def queries() -> list[Query]:
    """The predicates of the question."""
    random = np.random.default_rng(11)
    users = np.sort(random.choice(10**9, 1_000, replace=False))
    apps = np.sort(random.choice(APPS, 1_000, replace=False))
    listed_users, listed_apps = ", ".join(map(str, users)), ", ".join(f"'app-{i:04d}'" for i in apps)
    low, high = 20590 * DAY_MICROS + DAY_MICROS // 4, 20592 * DAY_MICROS
    return [
        Query(
            "point",
            "dt = DATE '2026-05-17' AND app = 'app-0042'",
            lambda d: (d.day + DAY0 == 20590) & has_app(d, one_app(42)),
            "dt = '2026-05-17' AND app = 'app-0042'",
        ),
        Query("point on bounds", "user_id = 123456789", lambda d: in_points(d, np.array([123456789]))),
        Query(
            "range",
            "ts >= TIMESTAMP '2026-05-17 06:00:00Z' AND ts < TIMESTAMP '2026-05-19 00:00:00Z'",
            lambda d: (d.ts[1] >= low) & (d.ts[0] < high),
            "ts >= '2026-05-17T06:00:00+00:00' AND ts < '2026-05-19T00:00:00+00:00'",
        ),
        Query("IN 1,000 on bounds", f"user_id IN ({listed_users})", lambda d: in_points(d, users)),
        Query("IN 1,000 on partition", f"app IN ({listed_apps})", lambda d: has_app(d, np.isin(np.arange(APPS), apps))),
        Query(
            "OR",
            "(dt = DATE '2026-05-17' AND app = 'app-0001') OR user_id <= 6000 OR url = '/u/00000777'",
            lambda d: (
                ((d.day + DAY0 == 20590) & has_app(d, one_app(1)))
                | (d.user[0] <= 6000)
                | ((d.url[0] <= 777) & (d.url[1] >= 777))
            ),
            "(dt = '2026-05-17' AND app = 'app-0001') OR user_id <= 6000 OR url = '/u/00000777'",
        ),
        Query(
            "function of bounds",
            "cast(ts AS date) = DATE '2026-05-17'",
            lambda d: (d.ts[1] // DAY_MICROS >= 20590) & (d.ts[0] // DAY_MICROS <= 20590),
            "ts >= '2026-05-17T00:00:00+00:00' AND ts < '2026-05-18T00:00:00+00:00'",
        ),
        Query("prefix", "url LIKE '/u/0000012%'", lambda d: (d.url[0] < 130) & (d.url[1] >= 120)),
    ]


class Peer:
    """PyIceberg's evaluators over a sample of the same files."""

    def __init__(self, data: Data, rows: Array) -> None:
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.transforms import IdentityTransform
        from pyiceberg.types import DateType, LongType, NestedField, StringType, TimestamptzType

        types = (DateType(), StringType(), TimestamptzType(), LongType(), StringType())
        named = enumerate(zip(SCHEMA.names, types, strict=True), start=1)
        self.schema = Schema(*(NestedField(i, name, t, required=False) for i, (name, t) in named))
        identity: Any = IdentityTransform()
        self.spec = PartitionSpec(PartitionField(1, 1000, identity, "dt"), PartitionField(2, 1001, identity, "app"))
        self.files = [self._file(data, int(i)) for i in rows]

    def _file(self, data: Data, i: int) -> Any:
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        counts = {3: 1000, 4: 1000, 5: 1000}
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"file-{i}",
            file_format=FileFormat.PARQUET,
            partition=Record(int(data.day[i] + DAY0), f"app-{data.app[i]:04d}"),
            record_count=1000,
            file_size_in_bytes=1,
            value_counts=counts,
            null_value_counts=dict.fromkeys(counts, 0),
            nan_value_counts={},
            lower_bounds=self._bounds(data, i, 0),
            upper_bounds=self._bounds(data, i, 1),
        )

    def _bounds(self, data: Data, i: int, side: int) -> dict[int, bytes]:
        from pyiceberg.conversions import to_bytes
        from pyiceberg.types import PrimitiveType

        values: dict[int, Any] = {
            3: int(data.ts[side][i]),
            4: int(data.user[side][i]),
            5: f"/u/{data.url[side][i]:08d}",
        }
        return {key: to_bytes(cast(PrimitiveType, self.schema.find_type(key)), value) for key, value in values.items()}

    def keep(self, text: str) -> tuple[Array, float]:
        """Which files it keeps, and the seconds for each file; the text is parsed before the clock starts."""
        from pyiceberg.expressions.parser import parse
        from pyiceberg.expressions.visitors import (
            _InclusiveMetricsEvaluator,
            expression_evaluator,
            inclusive_projection,
        )
        from pyiceberg.schema import Schema

        expression = parse(text)
        start = time.perf_counter()
        projected = inclusive_projection(self.schema, self.spec, True)(expression)
        partition = Schema(*self.spec.partition_type(self.schema).fields)
        by_partition = expression_evaluator(partition, projected, True)
        by_metrics = _InclusiveMetricsEvaluator(self.schema, expression, True)
        kept = np.array([bool(by_partition(f.partition)) and bool(by_metrics.eval(f)) for f in self.files])
        return kept, (time.perf_counter() - start) / len(self.files)


def timed(pruner: Pruner, batch: Containers) -> tuple[Judgement, float]:
    """One judgement and its seconds."""
    start = time.perf_counter()
    judgement = pruner.judge(batch)
    return judgement, time.perf_counter() - start


def main() -> None:
    """Run, check, print."""
    data = generate()
    batch = containers(data)
    rows = np.random.default_rng(3).choice(np.flatnonzero(~data.shared), SAMPLE, replace=False)
    peer = Peer(data, rows)
    print(f"{FILES:,} files; peer: PyIceberg's evaluators on a sample of {SAMPLE:,} of them")
    columns = (("kept", 10), ("whole", 9), ("compile", 11), ("cold", 11), ("warm", 11), ("peer, all", 12), ("ratio", 9))
    print(f"{'predicate':<24}" + "".join(f"{name:>{width}}" for name, width in columns))
    ratios = [run(query, data, batch, peer, rows) for query in queries()]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"smallest ratio {min(ratios):,.0f}x, target {TARGET}x (compile + warm); peak memory {memory:.0f} MiB")


def run(query: Query, data: Data, batch: Containers, peer: Peer, rows: Array) -> float:
    """One line of the table; the answers are checked before anything is printed."""
    bound = bind_text(query.where, SCHEMA)
    start = time.perf_counter()
    pruner = Pruner(bound)
    compiled = time.perf_counter() - start
    first, cold = timed(pruner, batch)
    warm = min(timed(pruner, batch)[1] for _ in range(REPEATS))
    kept, expected = first.verdicts != Verdict.SKIP, query.answer(data)
    assert np.array_equal(kept, expected), f"{query.name}: {kept.sum()} kept, expected {expected.sum()}"
    theirs, seconds = peer.keep(query.peer_text)
    assert not (kept[rows] & ~theirs).any(), f"{query.name}: a file kept that PyIceberg skips"
    ratio = seconds * FILES / (warm + compiled)
    whole = int((first.verdicts == Verdict.KEEP_WHOLE).sum())
    times = "".join(f"{x * 1e3:>8.1f} ms" for x in (compiled, cold, warm))
    print(f"{query.name:<24}{kept.sum():>10,}{whole:>9,}{times}{seconds * FILES:>10.1f} s{ratio:>8,.0f}x", flush=True)
    return ratio


if __name__ == "__main__":
    main()
