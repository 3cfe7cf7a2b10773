"""How commands change rows, as a table's properties say it: `write.delete.mode`, `write.delete.isolation-level`, and
the same for `update` and `merge`. The names and their defaults are Iceberg's.

| mode | rows that change |
|---|---|
| `copy-on-write` | their files are written again without them |
| `merge-on-read` | stay where they are, and a delete file says that they are gone |

| isolation level | files with rows that match, which others add or change in the meantime |
|---|---|
| `serializable` | the command is planned again |
| `snapshot` | are left alone; only files that the command itself changes must be as they were |

Other commands (`overwrite`) copy on write, and are serializable. Tables of format version 1 have no delete files.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import LakeError

COPY_ON_WRITE, MERGE_ON_READ = "copy-on-write", "merge-on-read"
SERIALIZABLE, SNAPSHOT = "serializable", "snapshot"
_COMMANDS = ("delete", "update", "merge")


def merges_on_read(properties: Mapping[str, str], format_version: int, command: str) -> bool:
    """Whether a command marks rows instead of writing their files again."""
    mode = _choice(properties, command, "mode", (COPY_ON_WRITE, MERGE_ON_READ))
    return format_version > 1 and mode == MERGE_ON_READ


def is_serializable(properties: Mapping[str, str], command: str) -> bool:
    """Whether a command is planned again when others add files that it would have read."""
    return _choice(properties, command, "isolation-level", (SERIALIZABLE, SNAPSHOT)) == SERIALIZABLE


def check_modes(properties: Mapping[str, str]) -> None:
    """An error for a mode or a level that there is not."""
    for command in _COMMANDS:
        merges_on_read(properties, 2, command)
        is_serializable(properties, command)


def _choice(properties: Mapping[str, str], command: str, setting: str, choices: tuple[str, str]) -> str:
    name = f"write.{command}.{setting}"
    value = properties.get(name, choices[0]) if command in _COMMANDS else choices[0]
    if value.lower() not in choices:
        raise LakeError(f"{name} is {value!r}: expected {' or '.join(choices)}", hint="correct it, or remove it")
    return value.lower()
