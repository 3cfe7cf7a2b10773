"""The rule that `--coalesce` and `--below` give a new table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import LakeError

if TYPE_CHECKING:
    from penstock.lake.layout.coalesce import Coalesce


def coalesce_rule(columns: str | None, below: str | None) -> Coalesce | None:
    """The rule of some columns; None where none are given."""
    from penstock.lake.layout.coalesce import Coalesce
    from penstock.maps.name_lists import read_names

    if columns is None and below is not None:
        raise LakeError("--below is given without --coalesce", hint="say which columns: --coalesce app")
    return None if columns is None else Coalesce(*read_names(columns), below=below)
