"""What Penstock raises, and how an error shows the place in a predicate's text that it is about.

Every error is a `PenstockError` and the natural built-in as well, so `except ValueError` works for people
who have never heard of Penstock. Errors carry their facts as fields and survive pickling, because they
travel from Spark's workers to the driver. What is shown is safe for a terminal and for a log: one line,
then at most 80 columns of the text around the position, whatever was in it, with a caret below:

    >>> print(PredicateError("unexpected ')'", "app = ) AND x", 6, expected="a value"))
    unexpected ')'; expected a value
      app = ) AND x
            ^

Not decided here: what is an error at all. A predicate that cannot prune is none; it keeps the file.
"""

import unicodedata
from collections.abc import Iterable, Sequence

_EXCERPT_WIDTH = 80
_LINE_LIMIT = 500
_NAMES_SHOWN = 12
# What the clients of storages and catalogs raise (fsspec, botocore, adlfs, SQLAlchemy, Thrift, REST) has no base class.
CLIENT_ERRORS = (Exception,)


class PenstockError(Exception):
    """The base of all errors that Penstock raises on purpose; `hint` is the way out."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return _one_line(self.message, self.hint)


class PenstockWarning(UserWarning):
    """Something worth knowing that does not stop the work: files that are not read, limits that come near."""

    def __str__(self) -> str:
        return printable(super().__str__())


class PredicateError(PenstockError, ValueError):
    """A predicate that cannot be read; `position` is the offset into `text` where it went wrong."""

    def __init__(
        self,
        message: str,
        text: str | None = None,
        position: int | None = None,
        *,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.text = text
        self.position = position
        self.expected = expected

    def __str__(self) -> str:
        line = _one_line(self.message, self.expected and f"expected {self.expected}", self.hint)
        if self.text is None or self.position is None:
            return line
        return f"{line}\n{_excerpt(self.text, self.position)}"


class UnknownColumnError(PredicateError):
    """A predicate names a column or field that the schema does not have."""

    name: str | None = None  # of a column that is missing altogether


class TypeMismatchError(PredicateError):
    """A predicate compares or combines values of types that do not go together."""


class SchemaError(PenstockError, ValueError):
    """A schema that cannot be read, or that contradicts itself or its data."""


class EvaluationError(PenstockError, ValueError):
    """A predicate that cannot be evaluated on the values of a row."""


class StorageError(PenstockError, OSError):
    """A place that cannot be listed or read."""


class MissingError(StorageError):
    """A file or a directory that is not there, or not any more."""


class ForbiddenError(StorageError):
    """A file or a directory that may not be read."""


class LayoutError(PenstockError, ValueError):
    """A directory layout that is not what was declared, or that cannot be read."""


class LakeError(PenstockError, LookupError):
    """A table, a name or a warehouse that is not there."""


class TableNotFoundError(LakeError):
    """A table that the lake does not have."""


class NamespaceNotFoundError(LakeError):
    """A namespace that the lake does not have."""


class TableExistsError(LakeError):
    """A name that another table has."""


class NamespaceExistsError(LakeError):
    """A name that another namespace has."""


class NamespaceNotEmptyError(LakeError):
    """A namespace that still has tables."""


class ConflictError(PenstockError, RuntimeError):
    """Other writers were faster every time; nothing was changed."""


class LimitError(PenstockError, RuntimeError):
    """More work than a limit allows; the message says which option or which predicate helps."""


def close_name(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known name that is written almost like an unknown one."""
    from difflib import get_close_matches

    names = {each.lower(): each for each in known}
    return next((names[match] for match in get_close_matches(name.lower(), names, n=1, cutoff=cutoff)), None)


def name_hint(name: str, known: Sequence[str]) -> str:
    """The hint for an unknown name: the one that was probably meant, or the first of those there are."""
    close = close_name(name, known)
    shown = known if len(known) <= _NAMES_SHOWN else [*known[:_NAMES_SHOWN], "…"]
    return f"did you mean {close!r}?" if close else f"there are: {', '.join(shown)}"


def _one_line(*parts: str | None) -> str:
    # Cut before escaping: a message that quotes a text of 1 MB must not cost 1 MB of output.
    line = "; ".join(part if len(part) <= _LINE_LIMIT else f"{part[:_LINE_LIMIT]}…" for part in parts if part)
    return printable(line)


def shortened(text: str, longest: int) -> str:
    """The text, cut where it is too long for a message."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def printable(text: str, keep: str = "") -> str:
    """A text on one line: what would not simply be drawn, such as a mark that turns the direction, as its escape.

    Characters to `keep` stay as they are, such as the line breaks of a text that has several.
    """
    return text if text.isprintable() else "".join(c if c in keep else _shown(c) for c in text)


def _excerpt(text: str, position: int) -> str:
    """The text around the position on one line, and a caret on the next one."""
    position = min(max(position, 0), len(text))
    before = _fitting(reversed(text[max(0, position - _EXCERPT_WIDTH // 2) : position]), _EXCERPT_WIDTH // 2)
    lead = ("…" if len(before) < position else "") + "".join(reversed(before))
    after = _fitting(text[position : position + _EXCERPT_WIDTH], _EXCERPT_WIDTH - _width(lead))
    tail = "".join(after) + ("…" if position + len(after) < len(text) else "")
    return f"  {lead}{tail}\n  {' ' * _width(lead)}^"


def _fitting(characters: Iterable[str], room: int) -> list[str]:
    """The first characters, each as it is shown, that fit into so many columns."""
    pieces: list[str] = []
    for piece in map(_shown, characters):
        room -= _width(piece)
        if room < 0:
            break
        pieces.append(piece)
    return pieces


def _shown(character: str) -> str:
    """The character, or its escape when a terminal would do something else than draw it."""
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def _width(shown: str) -> int:
    """Columns of a terminal: two for a wide East Asian character, none for a combining mark."""
    drawn = [c for c in shown if unicodedata.category(c) not in ("Mn", "Me")]
    return len(drawn) + sum(unicodedata.east_asian_width(c) in "WF" for c in drawn)
