"""What frames the rows of an Avro file: the schema they were written with, and how many there are.

DataFusion takes a file that ends within a block for one without the rest of its rows. So the blocks are counted first.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

MAGIC, _SYNC = b"Obj\x01", 16


@dataclass(frozen=True)
class Blocks:
    """The frame of one file."""

    schema: bytes  # as JSON
    rows: int


def read_blocks(data: bytes) -> Blocks:
    """The frame of a file that is whole."""
    from pyiceberg.avro.decoder import StreamingBinaryDecoder

    if not data.startswith(MAGIC):
        raise pa.ArrowInvalid("it does not begin as one")
    decoder, rows = StreamingBinaryDecoder(data), 0
    try:
        decoder.skip(len(MAGIC))
        meta: dict[str, bytes] = {}
        while count := decoder.read_int():
            if count < 0:  # the size of the entries follows
                decoder.read_int()
            for _ in range(abs(count)):
                name = decoder.read_utf8()
                meta[name] = decoder.read_bytes()
        sync = decoder.read(_SYNC)
        while decoder.tell() < len(data):
            rows += decoder.read_int()
            decoder.skip(decoder.read_int())
            if decoder.read(_SYNC) != sync:
                raise pa.ArrowInvalid("a block of it is damaged")
    except pa.ArrowInvalid:
        raise
    except (EOFError, ValueError, IndexError):
        raise pa.ArrowInvalid("it ends early") from None
    return Blocks(meta.get("avro.schema", b""), rows)
