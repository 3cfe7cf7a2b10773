"""Avro's container files: their header, and their blocks as columns by DataFusion's reader.

DataFusion is given a copy of the file with a schema that has nothing but how values are written (`PlainTypes`): it
does not know all logical types and names that there are. Blocks are copied as they are. Who asks gives the meaning of
values back to the columns.

DataFusion's threads are not forked with a process: a child of a process that has used it would wait for ever, so
that is an error.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.avro.encoder import BinaryEncoder

MAGIC = b"Obj\x01"
BATCH = 1 << 16  # rows
_TURN = 64  # files
_COPIED = 16 << 20  # bytes at once
_decoded = itertools.count()


@dataclass(frozen=True)
class Header:
    """What stands before the first block; `end` is where it ends, without the sync marker."""

    meta: Mapping[str, bytes]
    end: int


def read_header(data: bytes) -> Header:
    """The metadata of an Avro file.

    >>> read_header(write_header({"avro.codec": b"null"})).meta
    {'avro.codec': b'null'}
    """
    decoder = StreamingBinaryDecoder(data)
    meta: dict[str, bytes] = {}
    try:
        if decoder.read(len(MAGIC)) != MAGIC:
            raise ValueError("it is no Avro file")
        while count := decoder.read_int():
            if count < 0:
                decoder.read_int()  # the bytes of the block
            for _ in range(abs(count)):
                name = decoder.read_utf8()
                meta[name] = decoder.read_bytes()
    except (EOFError, OverflowError):
        raise ValueError("its header is cut short") from None
    return Header(meta, decoder.tell())


def write_header(meta: Mapping[str, bytes]) -> bytes:
    """A header up to its sync marker."""
    header = BytesIO()
    encoder = BinaryEncoder(header)
    encoder.write(MAGIC)
    encoder.write_int(len(meta))
    for name, value in meta.items():
        encoder.write_utf8(name)
        encoder.write_bytes(value)
    encoder.write_int(0)
    return header.getvalue()


@lru_cache(maxsize=1)
def _context(turn: int) -> tuple[Any, int]:
    """One context for many files, which takes threads and files of ever new names; and the process that made it.

    It keeps something of every file that it has read, so after a while another one takes its turn.
    """
    from datafusion import SessionConfig, SessionContext

    # One manifest is one stream, and mostly one batch, which need not be put together; several are read by threads.
    return SessionContext(SessionConfig().with_target_partitions(1).with_batch_size(BATCH)), os.getpid()


def decode_blocks(schema: str, header: Header, blocks: Any, names: Sequence[str]) -> pa.Table:
    """Columns of a file by a schema of plain types; `blocks` is a stream of what follows the header."""
    context, owner = _context(next(_decoded) // _TURN)
    if owner != os.getpid():
        raise RuntimeError("DataFusion's threads are not there after a fork: it would wait for them for ever")
    meta = {"avro.schema": schema.encode(), "avro.codec": header.meta.get("avro.codec", b"null")}
    handle, path = tempfile.mkstemp(prefix="penstock-", suffix=".avro")
    try:
        with open(handle, "wb") as file:
            file.write(write_header(meta))
            shutil.copyfileobj(blocks, file, _COPIED)
        return context.read_avro(path).select(*names).to_arrow_table()
    finally:
        os.unlink(path)


def branches(kind: Any) -> list[Any]:
    """The types that a field may have beside null."""
    return [branch for branch in (kind if isinstance(kind, list) else [kind]) if branch != "null"]


class PlainTypes:
    """Avro's types without anything that is not part of how they are written.

    A named type may be defined once and be referred to later, and some writers define it every time: here each use
    has a definition of its own, under a name of its own.
    """

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._count = 0

    def plain(self, kind: Any) -> Any:
        if isinstance(kind, list):
            return [self.plain(branch) for branch in kind]
        if isinstance(kind, str) and kind in self._named:
            return self.plain(self._named[kind])
        if not isinstance(kind, dict):
            return kind
        plain = {key: self.plain(kind[key]) for key in ("type", "items", "values") if key in kind}
        plain |= {key: kind[key] for key in ("size", "symbols") if key in kind}
        if "fields" in kind:
            plain["fields"] = [{"name": f["name"], "type": self.plain(f["type"])} for f in kind["fields"]]
        if "name" in kind:
            names = [kind["name"], f"{kind['namespace']}.{kind['name']}"] if "namespace" in kind else [kind["name"]]
            self._named |= dict.fromkeys(names, kind)
            self._count += 1
            plain["name"] = f"type{self._count}"
        return plain
