"""`penstock sql`: how statements are told apart, and the prompt."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli import sql_command
from penstock.cli.main import main
from penstock.errors import LakeError


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        (" ; ;SELECT 1;;\nSELECT 2 ; ", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' AS a; SELECT `;` FROM t", ["SELECT ';' AS a", "SELECT `;` FROM t"]),
        ("-- one; two\nSELECT 1; -- three", ["-- one; two\nSELECT 1"]),
        ("/* ; */ SELECT 1; /* ; */", ["/* ; */ SELECT 1"]),
        ("", []),
    ],
)
def test_a_semicolon_ends_a_statement_outside_of_quotes_and_comments(text: str, statements: list[str]) -> None:
    assert sql_command.split_statements(text) == statements


def test_quotes_that_are_not_closed_are_one_line() -> None:
    with pytest.raises(LakeError, match="cannot read the statements"):
        sql_command.split_statements("SELECT 'a")


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str | type[BaseException]) -> list[str]:
    """The statements that a prompt takes from lines."""
    left: Iterator[Any] = iter([*lines, EOFError])

    def ask(prompt: str) -> str:
        line = next(left)
        if isinstance(line, str):
            return line
        raise line

    return list(sql_command._statements(ask))


def test_a_statement_may_have_several_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(monkeypatch, "SELECT", "1;", "", "SELECT 2; SELECT 3;") == ["SELECT\n1", "SELECT 2", "SELECT 3"]


def test_an_interrupt_forgets_what_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(monkeypatch, "SELECT oops", KeyboardInterrupt, "SELECT 1;") == ["SELECT 1"]


@pytest.mark.parametrize("word", ["exit", "quit;", "EXIT"])
def test_a_word_ends_the_prompt(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    assert typed(monkeypatch, "SELECT 1;", word, "SELECT 2;") == ["SELECT 1"]


def test_names_are_completed_in_any_case() -> None:
    names = ["SELECT", "web.events"]
    assert sql_command._completion(names, "sel", 0) == "SELECT"
    assert sql_command._completion(names, "WEB.", 0) == "web.events"
    assert sql_command._completion(names, "web.", 1) is None


def test_statements_come_from_one_place() -> None:
    done = CliRunner().invoke(main, ["sql", "SELECT 1", "--file", "-"], input="SELECT 2")
    assert done.exit_code == 2
    assert "both statements and --file are given" in done.stderr


def test_an_error_at_the_prompt_is_one_line_and_the_next_statement_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def answer(spark: Any, statement: str, limit: int, json: bool) -> list[Any]:
        asked.append(statement)
        if "bad" in statement:
            raise LakeError("no table 'web.bad'", hint="there are: none")
        return []

    lines = iter(["SELECT bad;", "SELECT 1;"])
    monkeypatch.setattr(sql_command, "_answer", answer)
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines, None) or (_ for _ in ()).throw(EOFError))
    sql_command._converse(SimpleNamespace(), SimpleNamespace(tables=list), 10)  # type: ignore[arg-type]
    assert asked == ["SELECT bad", "SELECT 1"]
    assert "Error: no table 'web.bad'; there are: none" in capsys.readouterr().err
