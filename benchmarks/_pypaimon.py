"""PyPaimon's shared shredding of a map against its own plain map, in a Python of its own: it needs an older Arrow.

The environment is made once, in `.matrix/pypaimon`. Whatever stands in the way is one `Unavailable` with one line of
reason. Run as a script, this is the inner side: it reads what is asked from standard input and prints the times.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

VERSION = "2.1.0"
PLAIN, SHARED = "plain", "shared shredding"
_HOME = Path(__file__).resolve().parents[1] / ".matrix" / "pypaimon"
_SECONDS = 300
_LAYOUTS: dict[str, dict[str, str]] = {
    PLAIN: {},
    SHARED: {
        "fields.headers.map.storage-layout": "shared-shredding",
    },
}


class Unavailable(Exception):
    """Why PyPaimon does not run here, in one line."""


def measure(home: Path, source: Path, cold: str, sought: Sequence[str], rounds: int) -> dict[str, Any]:
    """By layout: seconds and answer of each question, seconds to write, bytes."""
    asked = {"home": str(home), "source": str(source), "cold": cold, "sought": list(sought), "rounds": rounds}
    said = _run([str(_python()), __file__], json.dumps(asked)).splitlines()[-1]
    try:
        return dict(json.loads(said))
    except ValueError:
        raise Unavailable(f"it said {said[:100]!r}") from None


def _python() -> Path:
    """The Python of the environment, made if need be."""
    python, stamp = _HOME / "bin" / "python", _HOME / f".installed-{VERSION}"
    if not stamp.exists():
        try:
            venv.create(_HOME, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Unavailable(f"no environment could be made: {error}") from None
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"pypaimon=={VERSION}"]
        _run([str(python), *install])
        stamp.touch()
    return python


def _run(command: list[str], given: str = "") -> str:
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(str(error)) from None
    if done.returncode or (given and not done.stdout.strip()):
        said = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise Unavailable(said[-1])
    return done.stdout


def _inner(asked: dict[str, Any]) -> dict[str, Any]:
    """Write the rows in both layouts, then ask, taking turns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paimon = import_module("pypaimon")
    catalog = paimon.CatalogFactory.create({"warehouse": asked["home"]})
    catalog.create_database("web", True)
    rows = pq.read_table(asked["source"])
    strings = pa.map_(pa.field("key", pa.string(), nullable=False), pa.string())
    schema = pa.schema([("id", pa.int64()), ("headers", strings)])
    rows = pa.table({"id": rows["id"], "headers": rows["headers"].cast(strings)}, schema=schema)
    found: dict[str, Any] = {}
    tables = {}
    for name, options in _LAYOUTS.items():
        identifier = f"web.{name.replace(' ', '_')}"
        catalog.create_table(identifier, paimon.Schema.from_pyarrow_schema(schema, options=options), False)
        tables[name] = catalog.get_table(identifier)
        seconds, _ = _timed(partial(_write, tables[name], rows))
        files = Path(asked["home"]).rglob(f"{identifier.split('.')[1]}/**/*.parquet")
        size = sum(path.stat().st_size for path in files)
        found[name] = {"write": seconds, "bytes": size, "seconds": {}, "answers": {}}
    for question, ask in _questions(asked["cold"], asked["sought"]).items():
        for _ in range(asked["rounds"]):
            for name, table in tables.items():
                seconds, answer = _timed(partial(ask, table))
                best = found[name]["seconds"].get(question, seconds)
                found[name]["seconds"][question] = min(best, seconds)
                found[name]["answers"][question] = answer
    return found


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


def _write(table: Any, rows: Any) -> None:
    builder = table.new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(rows)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def _read(table: Any, *columns: str) -> list[Any]:
    builder = table.new_read_builder().with_projection(list(columns))
    splits = builder.new_scan().plan().splits()
    return list(builder.new_read().to_arrow(splits).columns)


def _questions(cold: str, sought: Sequence[str]) -> dict[str, Callable[[Any], list[int]]]:
    """The questions with Arrow's functions: PyPaimon reads single keys, but filters by none."""
    import pyarrow.compute as pc

    def total(values: Any) -> int:
        return int(pc.sum(pc.utf8_length(values)).as_py() or 0)

    def count(values: Any) -> int:
        return int(len(values) - values.null_count)

    def entries(maps: Any) -> list[Any]:  # a slice of maps has the keys of all
        first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
        return [part.slice(first, last - first) for part in (maps.keys, maps.items)]

    def one(table: Any, key: str = "content-type") -> list[int]:
        (values,) = _read(table, f"headers['{key}']")
        return [total(values), count(values)]

    def three(table: Any) -> list[int]:
        keys = ("content-type", "user-agent", "host")
        types, agents, hosts = _read(table, *(f"headers['{key}']" for key in keys))
        return [total(types), total(agents), count(hosts)]

    def filtered(table: Any) -> list[int]:
        ids, values = _read(table, "id", f"headers['{sought[0]}']")
        kept = ids.filter(pc.equal(values, sought[1]))
        return [len(kept), pc.sum(kept).as_py()]

    def whole(table: Any) -> list[int]:
        (maps,) = _read(table, "headers")
        sizes = [(len(keys), total(keys), total(items)) for keys, items in map(entries, maps.chunks)]
        return [sum(each) for each in zip(*sizes, strict=True)]

    return {
        "one hot key": one,
        "three hot keys": three,
        "a filter on a hot key": filtered,
        "a cold key": lambda table: one(table, cold),
        "the whole map": whole,
    }


if __name__ == "__main__":
    print(json.dumps(_inner(json.load(sys.stdin))))
