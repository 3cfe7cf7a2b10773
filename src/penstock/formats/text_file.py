"""Files of text: what is behind their compression, as Spark's readers see it.

The suffix alone tells the compression, as in Hadoop. Text is UTF-8; a mark of the byte order at its start is no part
of it. Bytes that are not UTF-8 are an error, where Spark would put a replacement character into a value.
"""

from __future__ import annotations

import bz2
import gzip
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from penstock.formats.file_format import FileFormat, Reading, UnreadableError

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")


def _zstandard(data: bytes) -> bytes:
    return bytes(pa.input_stream(pa.py_buffer(data), compression="zstd").read())


_DECOMPRESSED: Mapping[str, Callable[[bytes], bytes]] = {
    "gz": gzip.decompress,
    "bz2": bz2.decompress,
    "deflate": zlib.decompress,
    "zst": _zstandard,
}
_OF_HADOOP = ("snappy", "lz4")  # in a frame of Hadoop's own
_NO_CODEC = ("xz",)  # Spark reads such a file as if it was not compressed


def text_bytes(source: Any, reading: Reading) -> bytes:
    """The bytes of a file of text, checked to be UTF-8."""
    data: bytes = source.read()
    suffix = reading.path.rpartition("/")[2].lower().rpartition(".")[2]
    if suffix in (*_OF_HADOOP, *_NO_CODEC):
        hint = "compress it with gzip, bzip2 or zstd"
        hint += ", or read it by dataframe(spark)" if suffix in _OF_HADOOP else ""
        raise UnreadableError(f"text that is compressed as .{suffix} is not read", hint=hint)
    decompress = _DECOMPRESSED.get(suffix)
    if decompress is not None:
        try:
            data = decompress(data)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise UnreadableError(f"its compression is damaged ({error})", hint="remove or replace it") from None
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = 1 + len(_LINE_END.findall(data, 0, error.start))
        hint = "write it as UTF-8, or read it by dataframe(spark)"
        raise UnreadableError(f"line {line:,} is not UTF-8", hint=hint) from None
    return data.removeprefix(_BOM)


def lines_of(data: bytes) -> list[bytes]:
    """The lines, which `\\n`, `\\r` or both end."""
    lines = _LINE_END.split(data) if b"\r" in data else data.split(b"\n")
    return lines[:-1] if not lines[-1] else lines


def check_options(file_format: FileFormat, reading: Reading) -> None:
    """Refuse what only Spark's reader follows."""
    for name in file_format.spark_options:
        if name.lower() in dict(reading.options):
            raise unfollowed(file_format, name, reading.option(name, ""))
    if reading.option("mode", "PERMISSIVE").upper() != "PERMISSIVE":
        raise unfollowed(file_format, "mode", reading.option("mode", ""))
    for name in ("encoding", "charset"):
        if reading.option(name, "UTF-8").upper() not in ("UTF-8", "UTF8"):
            raise unfollowed(file_format, name, reading.option(name, ""))


def unfollowed(file_format: FileFormat, name: str, value: str) -> UnreadableError:
    """What to say of an option."""
    message = f"only Spark follows the option {name}={value!r} of {file_format.title} files"
    return UnreadableError(message, hint="read them by dataframe(spark), or leave it out")


def is_set(reading: Reading, name: str) -> bool:
    """An option that is true or false."""
    text = reading.option(name, "false").lower()
    if text not in ("true", "false"):
        raise UnreadableError(f"the option {name} is {text!r}", hint="write true or false")
    return text == "true"
