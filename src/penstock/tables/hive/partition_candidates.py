"""Everything that lies in the directories of one level, as columns: which of it can be a partition, and its text.

Names of the common form, the key as it is declared and a text without escapes, are read together. Hidden names are
passed over. Every other name is looked at alone, where the layout's errors come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.kernels.vector import Mask
from penstock.formats.format_registry import is_hidden
from penstock.storage.entries import Entries, Entry
from penstock.tables.hive.directory_names import plain_texts

Positions = npt.NDArray[np.int64]
Look = Callable[[Entry, str], tuple[str | None] | None]


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
        """How many there are."""
        return len(self.owners)

    def entry(self, i: int) -> Entry:
        """What is known of one of them."""
        return self.listings[int(self.owners[i])].entry(int(self.inside[i]))

    def name(self, i: int) -> str:
        """Its name, as it was listed."""
        return str(self.listings[self.owners[i]].names[self.inside[i]])

    def path(self, i: int) -> str:
        """Where it lies."""
        return f"{self.places[self.owners[i]]}/{self.name(i)}"

    def take(self, which: Mask) -> Candidates:
        """Some of them."""
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
