"""A table that was created for rows or files is dropped again when writing them fails."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.lake.commit.snapshot import folder_of
from penstock.storage.path_names import split

if TYPE_CHECKING:
    from penstock.lake.lake import Lake


def take_away(lake: Lake, name: str) -> None:
    """Drop a table, with its folders where they are empty then, unless somebody else has written to it."""
    with suppress(Exception):  # what went wrong before is what matters
        made = lake.catalog.load_table(name)
        if made.metadata.current_snapshot() is None:
            lake.catalog.drop_table(name)
            for path in (made.metadata_location, *(entry.metadata_file for entry in made.metadata.metadata_log)):
                made.io.delete(path)
            for folder in (folder_of(made, "metadata"), made.metadata.location):
                scheme, path = split(folder)
                if scheme == "file":
                    os.rmdir(path)
