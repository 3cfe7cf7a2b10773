"""Directory names: which of them are partitions, and what value each stands for.

| name | meaning |
|---|---|
| `dt=2026-05-17` | column `dt`, text `2026-05-17` |
| `year=` | the empty text |
| `region=US%2FCA` | `US/CA`; decoded once, so `%252F` is `%2F` |
| `a=b=c` | column `a`, text `b=c` |
| `app=__HIVE_DEFAULT_PARTITION__` | NULL |
| `=v`, `plain` | no partition |
| `_tmp`, `.hidden` | hidden |

All entries of one level are read together, as columns: names of the common form, the key as it is declared and a text
without escapes, at once. Every other name is looked at alone, where the layout's errors come from.

A file is a data file whatever its name is, unless it is hidden: Hive writes `000000_0`, Impala `1.parq`.

>>> parse_name("region=US%2FCA", "/t")
('region', 'US/CA')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import LayoutError
from penstock.expr.kernels.physical import mask_of
from penstock.expr.kernels.vector import Mask
from penstock.formats.format_registry import is_hidden
from penstock.storage.entries import Entries, Entry

Positions = npt.NDArray[np.int64]
Look = Callable[[Entry, str], tuple[str | None] | None]
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Octets in a name that need a closer look; 0x7f and above, too, for the names that are no UTF-8.
_ODD = np.zeros(256, np.bool_)
_ODD[[*range(0x20), 0x7F, ord("%")]] = True


def parse_name(name: str, where: str) -> tuple[str, str | None] | None:
    """Column and text of a partition directory; None when it is none; an error when it cannot be read."""
    key, equals, raw = name.partition("=")
    if not equals or not key:
        return None
    return _decode(key, name, where), None if raw == DEFAULT_PARTITION else _decode(raw, name, where)


def plain_texts(names: Sequence[str], key: str) -> tuple[pa.Array, Mask]:
    """The texts behind `key=`, and for which of the names that is all there is to say; the others need `parse_name`."""
    try:
        array = pa.array(names, pa.string())
    except UnicodeEncodeError:  # bytes that are not text: one of them is enough to look at each alone
        return pa.nulls(len(names), pa.string()), np.zeros(len(names), np.bool_)
    prefix = f"{key}="
    texts = pc.utf8_slice_codeunits(array, len(prefix))
    plain = mask_of(pc.starts_with(array, prefix))
    raw_bytes = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    if _ODD[raw_bytes].any():
        plain &= ~mask_of(pc.match_substring_regex(array, r"[\x00-\x1f\x7f%]"))
    special = pc.is_in(texts, pa.array([".", "..", DEFAULT_PARTITION]))
    return texts, plain & ~mask_of(special)


def check_utf8(name: str, where: str) -> None:
    """Refuse a name of bytes that are not text: a local disk takes any."""
    if not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name):
        raise LayoutError(f"{name!r} in {where} is not UTF-8", hint="rename it")


def _decode(raw: str, name: str, where: str) -> str:
    check_utf8(name, where)
    if "%" not in raw:
        text = raw
    elif _BAD_ESCAPE.search(raw):
        message = f"partition directory {name!r} in {where}: a % that is no escape"
        raise LayoutError(message, hint="rename it (%25 is a %)")
    else:
        latin = raw.encode().decode("latin-1")  # bytes as characters: escaped and plain ones can be mixed
        raw_bytes = _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), latin).encode("latin-1")
        try:
            text = raw_bytes.decode()
        except UnicodeDecodeError:
            raise LayoutError(f"partition directory {name!r} in {where} is not UTF-8", hint="rename it") from None
    if text in (".", "..") or _CONTROL.search(text):
        raise LayoutError(f"partition directory {name!r} in {where} holds {text!r}", hint="rename it")
    return text


@dataclass(frozen=True)
class Candidates:
    """Entries of several directories: the directory of each, its place in that listing, and its text."""

    places: Sequence[str]
    listings: Sequence[Entries]
    owners: Positions
    inside: Positions
    texts: pa.Array

    @property
    def count(self) -> int:
        return len(self.owners)

    def entry(self, i: int) -> Entry:
        return self.listings[int(self.owners[i])].entry(int(self.inside[i]))

    def name(self, i: int) -> str:
        return str(self.listings[self.owners[i]].names[self.inside[i]])

    def path(self, i: int) -> str:
        return f"{self.places[self.owners[i]]}/{self.name(i)}"

    def take(self, which: Mask) -> Candidates:
        texts = self.texts.filter(pa.array(which))
        return replace(self, owners=self.owners[which], inside=self.inside[which], texts=texts)

    def in_order(self, positions: Positions) -> list[int]:
        """Positions sorted by the order of the directories, then by name."""
        owners, inside = self.owners.tolist(), self.inside.tolist()
        return sorted(positions.tolist(), key=lambda i: (owners[i], self.listings[owners[i]].names[inside[i]]))


def candidates(places: Sequence[str], listings: Sequence[Entries], key: str, look: Look) -> Candidates:
    """All partitions of one key; `look` answers for names that are not of the common form, None for no partition."""
    sizes = [len(listing.names) for listing in listings]
    owners = np.repeat(np.arange(len(listings)), sizes)
    inside = np.arange(sum(sizes)) - np.repeat(np.cumsum([0, *sizes[:-1]]), sizes) if sizes else owners
    texts, partitions = plain_texts([name for listing in listings for name in listing.names], key)
    entries = Candidates(places, listings, owners, inside, texts)
    odd = [i for i in entries.in_order(np.flatnonzero(~partitions)) if not is_hidden(entries.name(i))]
    if odd:
        looked = {i: look(entries.entry(i), places[owners[i]]) for i in odd}
        read = sorted(i for i, text in looked.items() if text is not None)
        partitions[read] = True
        answers = pa.array([looked[i][0] for i in read], pa.string())  # type: ignore[index]
        mask = np.zeros(len(owners), np.bool_)
        mask[read] = True
        entries = replace(entries, texts=pc.replace_with_mask(texts, pa.array(mask), answers))
    return entries.take(partitions)
