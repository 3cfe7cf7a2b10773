"""Errors keep their fields wherever they travel, and show the right place of any text, safely."""

import copy
import pickle
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import errors
from penstock.errors import (
    ConflictError,
    EvaluationError,
    ForbiddenError,
    LakeError,
    LayoutError,
    LimitError,
    MissingError,
    NamespaceExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    PenstockError,
    PredicateError,
    SchemaError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
    TypeMismatchError,
    UnknownColumnError,
)

PREDICATE_ERRORS = [PredicateError, UnknownColumnError, TypeMismatchError]
PLAIN_ERRORS = [
    PenstockError, SchemaError, EvaluationError, ConflictError, LakeError, LayoutError, LimitError, StorageError,
    ForbiddenError, MissingError, NamespaceExistsError, NamespaceNotEmptyError, NamespaceNotFoundError,
    TableExistsError, TableNotFoundError,
]  # fmt: skip


def columns(line: str) -> int:
    """How many columns of a terminal a line takes."""
    shown = [c for c in line if unicodedata.category(c) not in ("Mn", "Me")]
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in shown)


def test_every_error_of_the_module_is_tested_here():
    public = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, PenstockError)}
    assert public == {*PREDICATE_ERRORS, *PLAIN_ERRORS}


@pytest.mark.parametrize("kind", [*PREDICATE_ERRORS, SchemaError, EvaluationError])
def test_errors_are_also_value_errors(kind):
    assert issubclass(kind, PenstockError)
    assert issubclass(kind, ValueError)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", PREDICATE_ERRORS)
def test_predicate_errors_survive_pickling_with_all_fields(kind, protocol):
    error = kind("no column 'aap'", "aap = 1", 0, expected="a column", hint="did you mean 'app'?")
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is kind
    assert vars(again) == vars(error)
    assert vars(again) == {
        "message": "no column 'aap'",
        "text": "aap = 1",
        "position": 0,
        "expected": "a column",
        "hint": "did you mean 'app'?",
    }
    assert again.args == error.args
    assert str(again) == str(error)


@pytest.mark.parametrize("kind", PREDICATE_ERRORS)
def test_fields_given_by_keyword_or_set_later_survive_too(kind):
    error = kind("bad", text="a b", expected="AND")
    error.position = 2
    error.add_note("seen in a stream")
    again = copy.copy(pickle.loads(pickle.dumps(error)))
    assert (again.text, again.position, again.expected, again.hint) == ("a b", 2, "AND", None)
    assert again.__notes__ == ["seen in a stream"]


@pytest.mark.parametrize("kind", PLAIN_ERRORS)
def test_plain_errors_survive_pickling_with_all_fields(kind):
    again = pickle.loads(pickle.dumps(kind("column 'a' is declared twice", hint="rename one")))
    assert type(again) is kind
    assert (again.message, again.hint) == ("column 'a' is declared twice", "rename one")
    assert str(again) == "column 'a' is declared twice; rename one"


def test_an_error_without_a_position_is_one_line():
    assert str(PredicateError("empty predicate", "")) == "empty predicate"
    assert str(PredicateError("empty predicate", position=3)) == "empty predicate"


def test_the_caret_stands_under_the_position():
    error = PredicateError("unexpected ')'", "app = ) AND x", 6, expected="a value", hint="remove it")
    assert str(error).splitlines() == [
        "unexpected ')'; expected a value; remove it",
        "  app = ) AND x",
        "        ^",
    ]


def test_the_end_of_the_text_is_a_position():
    assert str(PredicateError("ended", "a =", 3)).splitlines()[1:] == ["  a =", "     ^"]
    assert str(PredicateError("ended", "", 0)).splitlines()[1:] == ["  ", "  ^"]


@pytest.mark.parametrize(("position", "column"), [(-5, 2), (99, 5)])
def test_a_position_outside_of_the_text_is_moved_to_its_edge(position, column):
    assert str(PredicateError("bad", "abc", position)).splitlines()[2] == " " * column + "^"


def test_a_long_text_is_cut_on_both_sides():
    text = "x" * 500_000 + "HERE" + "y" * 500_000
    _, excerpt, caret = str(PredicateError("bad", text, 500_000)).splitlines()
    assert excerpt.startswith("  …xxx")
    assert excerpt.endswith("yyy…")
    assert excerpt[caret.index("^") :].startswith("HERE")
    assert columns(excerpt) <= 84


def test_control_characters_are_shown_escaped_and_the_caret_moves_with_them():
    text = "a\t=\n\x1b[31m\x00 \u202e\ud800 HERE"
    _, excerpt, caret = str(PredicateError("bad", text, text.index("HERE"))).splitlines()
    assert excerpt == r"  a\t=\n\x1b[31m\x00 \u202e\ud800 HERE"
    assert excerpt[caret.index("^") :] == "HERE"


def test_the_caret_knows_wide_characters_and_combining_marks():
    text = "名 = 'e\u0301' HERE"
    _, excerpt, caret = str(PredicateError("bad", text, text.index("HERE"))).splitlines()
    assert excerpt == f"  {text}"
    assert caret.index("^") == columns(excerpt) - len("HERE")


@pytest.mark.parametrize("hostile", ["\u0301" * 1_000_000, "\x00" * 1_000_000, "名" * 1_000_000, "'" * 1_000_000])
def test_hostile_texts_make_short_messages(hostile):
    shown = str(PredicateError(f"cannot read {hostile}", hostile, 500_000, expected=hostile, hint=hostile))
    assert len(shown) < 10_000
    assert len(shown.splitlines()) == 3


def test_a_message_stays_on_one_line_and_the_field_keeps_what_was_said():
    error = PredicateError("no column 'a\nb\x1b[2J'")
    assert str(error) == r"no column 'a\nb\x1b[2J'"
    assert error.message == "no column 'a\nb\x1b[2J'"


@given(st.text(alphabet=st.characters(codec=None), max_size=200), st.integers(0, 200))
def test_any_text_gives_three_printable_lines_with_the_caret_at_its_place(text, position):
    position = min(position, len(text))
    lines = str(PredicateError("bad", text, position)).split("\n")
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert columns(lines[1]) <= 84
    # What stands before the caret is the same as when the text ends there.
    (until,) = str(PredicateError("bad", text[:position], position)).split("\n")[1:2]
    assert columns(until) == lines[2].index("^")
    assert lines[1].startswith(until)


def test_value_of_a_failed_row_is_shown_even_where_python_has_no_such_date() -> None:
    import pyarrow as pa

    from penstock.expr.bind import bind_text
    from penstock.expr.kernels.evaluate import filter_mask

    rows = pa.table({"ts": pa.array([10**18]).cast(pa.timestamp("us", "UTC"))})
    with pytest.raises(errors.EvaluationError, match="where ts is 1000000000000000000 microseconds after 1970-01-01"):
        filter_mask(bind_text("CAST(ts AS smallint) <= 5", rows.schema), rows)
