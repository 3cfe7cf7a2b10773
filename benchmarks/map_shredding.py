"""What does one key of a map cost?

    make bench ONLY=map_shredding                                 800,000 rows with 100 distinct keys
    PENSTOCK_BENCH_ROWS=5000000 PENSTOCK_BENCH_KEYS=100 make bench ONLY=map_shredding     five million, of 100 keys only

HTTP headers in a map of 10, 100 and 1,000 distinct keys; with 10 and with 1,000 there are an eighth of the rows. Spark
writes them four times from the same Parquet files, after a small write that does not count: as a plain map, with ten
hot keys shredded (`move`), with these copied (`mirror`), and as Spark's VARIANT, which Spark shreds by what it infers.
Then: one hot key, three, a filter on one, a cold key and the whole map. Reads take turns, the best of each counts.

PyPaimon's shared shredding runs without Spark, in a process of its own and on fewer rows, for its writer looks at each
row; its ratio is against its own plain map. Every answer is checked against Arrow's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import penstock
from benchmarks import _pypaimon
from benchmarks._headers import HOT, NOTHING, QUESTIONS, SOUGHT, WHOLE, answers, cold_key, hot_keys, make_rows

KEYS = tuple(int(keys) for keys in os.environ.get("PENSTOCK_BENCH_KEYS", "10,100,1000").split(","))
ROWS, FILES = int(os.environ.get("PENSTOCK_BENCH_ROWS", "800000")), 8
PAIMON_ROWS = min(20_000, ROWS // 8)
ROUNDS, LONG_ROUNDS = 5, 2
COLUMNS = "id bigint, headers map<string,string>"
WRITE, SIZE = "write", "MB on disk"
MEASURES = [*(question.name for question in QUESTIONS), WRITE, SIZE]
PLAIN, MOVE, MIRROR, VARIANT = "plain map", "shredded", "mirror", "VARIANT"
# The least that plain / shredded may be, and for which numbers of keys.
TARGETS = {
    "one hot key": (10.0, (100,)),
    WHOLE: (1 / 1.3, KEYS),
    WRITE: (1 / 1.3, KEYS),
    SIZE: (1 / 0.8, KEYS),
}

Answer = tuple[int, ...]


@dataclass
class Layout:
    """One way to store the maps: how to write it again and again, how to ask it for a key and for the map."""

    name: str
    write: Callable[[Any], tuple[Any, Path]]  # the rows as a DataFrame, and where they lie
    key: str = "headers['{}']"
    whole: str = "headers"
    found: dict[str, float] = field(default_factory=dict)  # seconds, or megabytes

    def note(self, measure: str, value: float) -> None:
        """Keep a value if it is the best so far."""
        self.found[measure] = min(value, self.found.get(measure, value))


def rows_with(keys: int) -> int:
    """How many rows there are: most with 100 keys, which is where a target is strict."""
    return ROWS if keys == 100 else ROWS // 8


def layouts(home: Path, spark: Any, keys: int) -> list[Layout]:
    """The four that Spark writes."""
    lake, hot = penstock.connect(home / "lake"), hot_keys(keys)
    numbers = iter(range(1_000))

    def penstock_writer(shred: Mapping[str, Any] | None) -> Callable[[Any], tuple[Any, Path]]:
        def write(rows: Any) -> tuple[Any, Path]:
            table = lake.create_table(f"web.t{next(numbers)}", COLUMNS, shred=shred)
            table.append(rows)
            return table.dataframe(spark), Path(table.table.metadata.location.removeprefix("file://"))

        return write

    def write_variant(rows: Any) -> tuple[Any, Path]:
        place = home / f"variant{next(numbers)}"
        rows.selectExpr("id", "to_variant_object(headers) AS headers").write.option("compression", "zstd").parquet(
            str(place)
        )
        return spark.read.parquet(str(place)), place

    get = "variant_get(headers, \"$['{}']\", 'string')"
    return [
        Layout(PLAIN, penstock_writer(None)),
        Layout(MOVE, penstock_writer({"headers": hot})),
        Layout(MIRROR, penstock_writer({"headers": penstock.Shred(*hot, mode="mirror")})),
        Layout(VARIANT, write_variant, get, "cast(headers AS map<string,string>)"),
    ]


def build(source: Path, keys: int) -> dict[str, Answer]:
    """The rows in plain files, and the answers."""
    source.mkdir()
    parts = []
    for number in range(FILES):
        rows = make_rows(number, rows_with(keys) // FILES, keys)
        pq.write_table(rows, source / f"{number}.parquet", compression="zstd")
        parts.append(answers(rows, keys))
    return {name: tuple(map(sum, zip(*(part[name] for part in parts), strict=True))) for name in parts[0]}


def write(found: Sequence[Layout], spark: Any, source: Path, keys: int) -> None:
    """Write the rows in every layout, once with few of them for Java's compiler, and make views of them."""
    few, rows = spark.read.parquet(str(source / "0.parquet")), spark.read.parquet(str(source))
    for layout in found:
        shutil.rmtree(layout.write(few)[1])
    for layout in [*found] * (2 if keys != 100 else 1):  # the smaller ones are over so soon that chance has its part
        start = time.perf_counter()
        df, place = layout.write(rows)
        layout.note(WRITE, time.perf_counter() - start)
        layout.note(SIZE, sum(path.stat().st_size for path in place.rglob("*.parquet")) / 1e6)
        df.createOrReplaceTempView(layout.name.replace(" ", "_"))


def ask(spark: Any, layout: Layout, text: str, cold: str) -> Answer:
    """What a layout answers to a question."""
    named = {name: layout.key.format(name) for name in HOT}
    own = {"cold": layout.key.format(cold), "map": layout.whole, "table": layout.name.replace(" ", "_")}
    return tuple(int(value) for value in spark.sql(text.format_map(named | own)).collect()[0])


def measure(spark: Any, home: Path, keys: int) -> list[Layout]:
    """All layouts of one number of keys; every answer is checked."""
    expected = build(home / "source", keys)
    found = layouts(home, spark, keys)
    write(found, spark, home / "source", keys)
    for question in QUESTIONS:
        for _ in range(LONG_ROUNDS if question.name == WHOLE else ROUNDS):
            for layout in found:
                start = time.perf_counter()
                answer = ask(spark, layout, question.text, cold_key(keys))
                layout.note(question.name, time.perf_counter() - start)
                assert answer == expected[question.name], f"{layout.name}, {question.name}: {answer}"
    return found


def paimon(home: Path, keys: int) -> dict[str, dict[str, float]] | None:
    """The same measures of PyPaimon's plain map and of its shared shredding; None if it does not run."""
    rows = make_rows(0, PAIMON_ROWS, keys)
    source = home / "few.parquet"
    pq.write_table(rows, source)
    try:
        found = _pypaimon.measure(home / "paimon", source, cold_key(keys), SOUGHT, ROUNDS)
    except _pypaimon.Unavailable as reason:
        print(f"without PyPaimon: {reason}", flush=True)
        return None
    for name, expected in answers(rows, keys).items():
        if name == NOTHING:
            continue
        for layout, each in found.items():
            assert tuple(each["answers"][name]) == expected, f"PyPaimon, {layout}, {name}: {each['answers'][name]}"
    return {n: {**each["seconds"], WRITE: each["write"], SIZE: each["bytes"] / 1e6} for n, each in found.items()}


def show(keys: int, found: Sequence[Layout], peer: Mapping[str, Mapping[str, float]] | None) -> None:
    """A table: each value, and how many times better than the plain map it is."""
    plain, rest = found[0], found[1:]
    print(f"\n{keys:,} distinct keys, {len(hot_keys(keys))} of them hot; {rows_with(keys):,} rows")
    heads = "".join(f"{layout.name:>20}" for layout in rest)
    print(f"{'':<28}{plain.name:>10}{heads}" + ("" if peer is None else f"{'PyPaimon':>22}"))
    for name in MEASURES:
        line = f"{name:<28}{_value(name, plain.found[name]):>10}"
        for layout in rest:
            line += f"{_value(name, layout.found[name]):>12}{plain.found[name] / layout.found[name]:>7.2f}x"
        if peer is not None and name in peer[_pypaimon.PLAIN]:
            own, shared = peer[_pypaimon.PLAIN][name], peer[_pypaimon.SHARED][name]
            line += f"{_value(name, shared):>14}{own / shared:>7.2f}x"
        print(line, flush=True)


def _value(name: str, value: float) -> str:
    return f"{value:,.1f} MB" if name == SIZE else f"{value * 1e3:,.0f} ms"


def judge(found: Mapping[int, Sequence[Layout]]) -> None:
    """The targets, and every measure in which a shredded map loses against the plain map or against VARIANT."""
    print("\ntargets, plain / shredded")
    for name, (least, numbers) in TARGETS.items():
        for keys in found.keys() & set(numbers):
            plain, shredded = (layout.found[name] for layout in found[keys][:2])
            reached = "reached" if plain / shredded >= least else "MISSED"
            print(f"  {name}, {keys:,} keys: {plain / shredded:.2f}x of at least {least:.2f}x: {reached}")
    print("losses, by more than a tenth")
    for keys, (base, *ours, variant) in found.items():
        for layout in ours:
            for other in (base, variant):
                ratios = {name: layout.found[name] / other.found[name] for name in MEASURES if name != NOTHING}
                worse = ", ".join(f"{name} {ratio:.2f}x" for name, ratio in ratios.items() if ratio > 1.1)
                if worse:
                    print(f"  {keys:,} keys, {layout.name} against {other.name}: {worse}")


def main() -> None:
    """Run, check, print."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}
        spark = penstock.session(master="local[2]", **settings, **{"spark.driver.memory": "6g"})
        print(f"Spark {spark.version}; PyPaimon {_pypaimon.VERSION} has {PAIMON_ROWS:,} rows")
        print("each with how many times better than a plain map it is, PyPaimon against its own plain map", flush=True)
        found = {}
        for keys in KEYS:
            place = home / str(keys)
            place.mkdir()
            found[keys] = measure(spark, place, keys)
            show(keys, found[keys], paimon(place, keys))
            shutil.rmtree(place)
        judge(found)
        spark.stop()
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
