"""A delete file of an Iceberg table, as far as planning knows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file that deletes rows of data files.

    `kind` is `position`, `vector` (a deletion vector, `length` bytes from `offset`) or `equality` (rows whose values
    in the columns `equality_ids` are listed).
    """

    kind: str
    path: str
    format: str
    size: int
    rows: int
    sequence_number: int
    equality_ids: tuple[int, ...] = ()
    referenced_data_file: str | None = None
    offset: int | None = None
    length: int | None = None
