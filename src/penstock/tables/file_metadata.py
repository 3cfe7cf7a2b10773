"""What Spark calls `_metadata`, as far as it is known before a file is opened: its path, name, size and time.

A filter on it (`_metadata.file_path LIKE …`) prunes files like any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from penstock.expr.tree import Column
from penstock.expr.types import TIMESTAMP
from penstock.prune.facts import Exact, Fact

# What Java escapes in the path of a URI: ASCII that is not legal there, and spaces and controls of other alphabets.
_NOT_IN_URLS = re.compile(r"[^A-Za-z0-9_\-!.~'()*,;:$&+=/@\u0080-\U0010ffff]|[\u0080-\u009f]|(?=[^\x00-\x7f])\s")
METADATA = pa.struct(
    {"file_path": pa.string(), "file_name": pa.string(), "file_size": pa.int64(), "file_modification_time": TIMESTAMP}
)


def with_metadata(schema: pa.Schema) -> pa.Schema:
    """What predicates may name: the columns, and what Spark calls `_metadata`."""
    return schema.append(pa.field("_metadata", METADATA))


def metadata_facts(urls: Sequence[str], sizes: pa.Array, times: pa.Array | None = None) -> list[Fact]:
    """Facts about files by their URLs, sizes and, where they are known, times of change in microseconds."""
    shown = [spark_url(url) for url in urls]
    values: dict[str, pa.Array] = {
        "file_path": pa.array(shown, pa.string()),
        "file_name": pa.array([url.rsplit("/", 1)[-1] for url in shown], pa.string()),
        "file_size": sizes,
    }
    if times is not None:
        values["file_modification_time"] = times.view(TIMESTAMP)
    return [Exact(Column(("_metadata", name), v.type), v, label="file") for name, v in values.items()]


def spark_url(name: str) -> str:
    """A file as `_metadata.file_path` shows it: Java escapes what is not legal in a path, and keeps other alphabets.

    >>> spark_url("file:///t/p=x y/ö#1.parquet")
    'file:/t/p=x%20y/ö%231.parquet'
    >>> spark_url("/t/a.parquet")
    'file:/t/a.parquet'
    """
    escaped = _NOT_IN_URLS.sub(lambda match: "".join(f"%{byte:02X}" for byte in match.group().encode()), name)
    return "file:" + escaped.removeprefix("file://") if name.startswith(("file:///", "/")) else escaped
