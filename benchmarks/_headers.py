"""Rows with HTTP headers in a map, made as whole columns, and questions about them with Arrow's answers.

Keys are drawn by Zipf's law, so that a row has 5 to 40 of them. Each key has a dictionary of values, of 2 values or of
200,000, the first of them drawn most often. Where in a map a key lies has nothing to do with how hot it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

FEWEST, MOST = 5, 40
HOT = (
    "host", "user-agent", "accept", "accept-encoding", "content-type", "accept-language", "x-request-id", "cookie",
    "referer", "cache-control",
)  # fmt: skip
SOUGHT = ("host", "shop-0497.example.com")  # in one row of 1,000
_COMMON = (
    "content-length", "connection", "origin", "authorization", "x-forwarded-for", "sec-fetch-mode", "dnt", "te",
    "if-none-match", "sec-ch-ua", "sec-ch-ua-platform", "x-correlation-id", "traceparent", "via", "pragma",
)  # fmt: skip
_WORDS = ("app", "cache", "client", "edge", "feature", "geo", "proxy", "region", "session", "tenant", "trace", "user")
_SIZES = (2, 20, 300, 5_000, 50_000)  # of the dictionaries that keys which are not hot share
_DRAWS = {10: 40, 100: 90, 1_000: 60}  # a row draws up to so many keys, some of them twice


@cache
def key_names(keys: int) -> tuple[str, ...]:
    """The names of all keys, the hottest first."""
    rest = (f"x-{_WORDS[i % 12]}-{_WORDS[i // 12 % 12]}-{i:03d}" for i in range(keys))
    return tuple([*HOT, *_COMMON, *rest][:keys])


def hot_keys(keys: int) -> tuple[str, ...]:
    """The ten hottest; of ten keys the eight hottest, so that there are others."""
    return HOT[: min(len(HOT), keys - 2)]


def cold_key(keys: int) -> str:
    """A key that is in few rows; with ten keys, the rarest."""
    return key_names(keys)[min(keys // 2, 200) if keys > len(HOT) else keys - 1]


@cache
def _values(keys: int) -> tuple[pa.Array, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All values in one array, and where those of each key begin and how many they are."""
    ids = [f"{i:016x}{j:016x}" for i, j in np.random.default_rng(7).integers(0, 1 << 62, (200_000, 2)).tolist()]
    systems = (
        "Windows NT 10.0; Win64; x64",
        "Macintosh; Intel Mac OS X 14_5",
        "X11; Linux x86_64",
        "Android 15; Mobile",
    )
    engine = "Mozilla/5.0 ({}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.{}.{} Safari/537.36"
    types = (
        "html",
        "json",
        "xml",
        "plain",
        "css",
        "javascript",
        "csv",
        "x-www-form-urlencoded",
        "pdf",
        "png",
        "webp",
        "mp4",
    )
    lists = [
        [f"shop-{i:04d}.example.com" for i in range(500)],
        [engine.format(systems[i % 4], 100 + i % 41, 6000 + i, i % 97) for i in range(2_000)],
        [f"text/html,application/xhtml+xml,application/xml;q=0.{i},*/*;q=0.8" for i in range(8)],
        ["gzip", "gzip, deflate", "gzip, deflate, br", "gzip, deflate, br, zstd", "identity"],
        [f"application/{name}; charset=utf-8" for name in types],
        [f"{a}-{b},{a};q=0.9,en;q=0.8" for a in ("en", "de", "fr", "es", "ja", "pt") for b in ("US", "GB", "DE", "CH")],
        ids,
        [f"session={each}" for each in ids],
        [f"https://www.example.com/catalog/{i % 40}/item-{i * 7919 % 20_011}" for i in range(20_000)],
        ["no-cache", "max-age=0", "no-store", "max-age=3600", "private", "public, max-age=86400"],
    ]  # fmt: skip
    for size in _SIZES:
        lists.append([f"{i * 2654435761 % (1 << 32):08x}-{i:05d}" if size > 300 else f"v{i}" for i in range(size)])
    of_key = [i if i < len(HOT) else len(HOT) + i % len(_SIZES) for i in range(keys)]
    sizes = np.array([len(each) for each in lists])
    starts = np.cumsum(sizes) - sizes
    return pa.array([value for each in lists for value in each]), starts[of_key], sizes[of_key]


def _entries(rng: np.random.Generator, rows: int, keys: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where the entries of each row begin, and the rank of each entry's key."""
    places = np.random.default_rng(keys).permutation(keys)  # of the keys in a map, by their rank
    weights = np.cumsum(1 / np.arange(1, keys + 1))
    draws = rng.integers(FEWEST, _DRAWS[keys], rows)
    drawn = np.searchsorted(weights, rng.random(draws.sum()) * weights[-1])
    found = _distinct(np.repeat(np.arange(rows) * keys, draws) + places[drawn])  # a key drawn twice is there once
    few = np.flatnonzero(np.bincount(found // keys, minlength=rows) < FEWEST)
    found = _distinct(np.concatenate([found, np.add.outer(few * keys, places[:FEWEST]).ravel()]))
    sizes = np.bincount(found // keys, minlength=rows)
    within = np.arange(len(found)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    ranks = np.argsort(places)[found[within < MOST] % keys]
    return np.concatenate([[0], np.cumsum(np.minimum(sizes, MOST))]), ranks


def _distinct(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """In order, each once: `np.unique` hashes, which takes many times as long."""
    numbers.sort()
    return numbers[np.diff(numbers, prepend=-1) > 0]


def make_rows(number: int, rows: int, keys: int) -> pa.Table:
    """The rows of one file."""
    rng = np.random.default_rng([number, keys])
    offsets, ranks = _entries(rng, rows, keys)
    values, starts, sizes = _values(keys)
    drawn = starts[ranks] + (rng.random(len(ranks)) ** 2 * sizes[ranks]).astype(np.int64)
    names = pa.array(key_names(keys)).take(pa.array(ranks))
    maps = pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), names, values.take(pa.array(drawn)))
    return pa.table({"id": np.arange(number * rows, (number + 1) * rows), "headers": maps})


@dataclass(frozen=True)
class Question:
    """A question as a query: `{a-key}` is the value of that key, `{map}` the map, `{cold}` the value of a cold key."""

    name: str
    text: str


NOTHING, WHOLE = "nothing: what a query costs", "the whole map"
QUESTIONS = (
    Question(NOTHING, "SELECT count(*) FROM {table} WHERE id < -1"),
    Question("one hot key", "SELECT sum(octet_length({content-type})), count({content-type}) FROM {table}"),
    Question(
        "three hot keys",
        "SELECT sum(octet_length({content-type})), sum(octet_length({user-agent})), count({host}) FROM {table}",
    ),
    Question("a filter on a hot key", f"SELECT count(*), sum(id) FROM {{table}} WHERE {{{SOUGHT[0]}}} = '{SOUGHT[1]}'"),
    Question("a cold key", "SELECT sum(octet_length({cold})), count({cold}) FROM {table}"),
    Question(
        WHOLE,
        "SELECT sum(size({map})), sum(length(array_join(map_keys({map}), ''))),"
        " sum(length(array_join(map_values({map}), ''))) FROM {table}",
    ),
)


def answers(rows: pa.Table, keys: int) -> dict[str, tuple[int, ...]]:
    """What Arrow says of some rows."""
    found: dict[str, Any] = {}
    for batch in rows.to_batches():
        maps = batch.column("headers")
        ids = np.repeat(np.asarray(batch.column("id")), np.diff(np.asarray(maps.offsets)))
        per_key = {name: _lengths(maps, name) for name in ("content-type", "user-agent", "host", cold_key(keys))}
        sought = pc.and_(pc.equal(maps.keys, SOUGHT[0]), pc.equal(maps.items, SOUGHT[1]))
        chars = [pc.sum(pc.utf8_length(part)).as_py() for part in (maps.keys, maps.items)]
        parts = {
            NOTHING: (0,),
            "one hot key": per_key["content-type"],
            "three hot keys": (per_key["content-type"][0], per_key["user-agent"][0], per_key["host"][1]),
            "a filter on a hot key": (pc.sum(sought).as_py(), int(ids[np.asarray(sought)].sum())),
            "a cold key": per_key[cold_key(keys)],
            WHOLE: (len(maps.keys), *chars),
        }
        for name, part in parts.items():
            found[name] = np.array(part, np.int64) + found.get(name, 0)
    return {name: tuple(total.tolist()) for name, total in found.items()}


def _lengths(maps: pa.Array, key: str) -> tuple[int, int]:
    values = maps.items.filter(pc.equal(maps.keys, key))
    return pc.sum(pc.binary_length(values)).as_py() or 0, len(values)
