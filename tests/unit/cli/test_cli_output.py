"""What commands print: no control character of a name, a value or a predicate, and the command's own options."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import penstock
from penstock.cli.main import main
from penstock.errors import PenstockError, PenstockWarning, PredicateError
from tests.fixtures.hive_writer import write_hive
from tests.fixtures.managed_tables import NAME, managed_table

EVIL = "\x1b]0;mine\x07\x1b[2J\x9b31m\u202e"
SHOWN = r"\x1b]0;mine\x07\x1b[2J\x9b31m\u202e"
RAW = tuple("\x1b\x07\x9b\u202e")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder, a column and a value that would take over a terminal."""
    rows = pa.table({"app": ["a", "\u202e"], "n": [1, 2], f"c{EVIL}": [EVIL, "x"]})
    return write_hive(tmp_path / f"t{EVIL}", rows, ["app"])


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def check(done: Result, code: int = 0) -> str:
    assert done.exit_code == code, done.output
    assert not any(c in done.output for c in RAW), ascii(done.output)
    return done.output


def test_no_command_prints_a_control_character_of_a_name_or_a_value(root: Path, tmp_path: Path) -> None:
    assert SHOWN in check(run("explain", root, "--where", f"app = '{EVIL}'"))
    assert r"\u202e" in check(run("partitions", root))
    managed_table(tmp_path / "w", "app string", ["app"]).append(pa.table({"app": [EVIL]}))
    assert SHOWN in check(run("partitions", NAME, "--warehouse", tmp_path / "w"))
    assert SHOWN in check(run("stream", NAME, "--warehouse", tmp_path / "w", "--once"))
    assert SHOWN in check(run("stream", root, "--once"))
    assert "mine" in check(run("explain", root, "--where", f"app = '{EVIL}'", "--json"))
    assert "mine" in check(run("stream", root, "--once", "--json"))
    assert SHOWN in check(run("report", root, "-o", root.parent / f"{EVIL}.html", "--no-advice"))


@pytest.mark.parametrize(
    "words",
    [
        ["explain", f"/nowhere/{EVIL}"],
        ["explain", ".", f"extra{EVIL}"],
        ["explain", ".", f"--{EVIL}"],
        [f"command{EVIL}"],
        ["stream", ".", "--limit", EVIL],
        ["tables", "--catalog", EVIL],
        ["compact", f"web.{EVIL}"],
        ["explain", "web.t", "--timezone", EVIL],
    ],
)
def test_no_error_prints_a_control_character_of_what_was_typed(words: list[str]) -> None:
    assert "mine" in check(run(*words), 2)


def test_errors_of_predicates_and_explain_show_escapes(root: Path) -> None:
    table = penstock.hive(root, "app string")
    plan = table.plan(f"`c{EVIL}` = '{EVIL}' AND app = '{EVIL}'")
    assert SHOWN in plan.explain()
    with pytest.raises(PenstockError) as caught:
        table.plan(f"app = '{EVIL}' AND `{EVIL}` = 1")
    for text in (plan.explain(), str(caught.value)):
        assert not any(c in text for c in RAW)


def test_a_warning_shows_escapes() -> None:
    with pytest.warns(PenstockWarning) as told:
        warnings.warn(f"{EVIL} is not read", PenstockWarning, stacklevel=1)
    assert str(told[0].message) == f"{SHOWN} is not read"


class TestOptions:
    def test_an_error_names_the_option_and_not_the_argument(self, tmp_path: Path) -> None:
        write_hive(tmp_path / "source", pa.table({"n": [1], "app": ["a"]}), ["app"])
        done = run("ingest", tmp_path / "source", "web.t", "--partition-by", "day(", "--warehouse", tmp_path / "w")
        assert "--partition-by" in check(done, 2)
        assert "partition_by" not in done.output
        managed_table(tmp_path / "lake", "n int")
        done = run("expire", NAME, "--keep-last", 0, "--warehouse", tmp_path / "lake")
        assert check(done, 2).startswith("Error: --keep-last is 0")

    def test_so_does_a_note(self, root: Path) -> None:
        assert '--partition-by "app string"' in check(run("explain", root))

    def test_a_path_and_a_predicate_stay_as_they_are(self, tmp_path: Path) -> None:
        done = run("explain", tmp_path / "on_change=1" / "where=2", "--where", "limit=3")
        assert "on_change=1/where=2" in check(done, 2)
        write_hive(tmp_path / "t", pa.table({"limit": [3], "n": [1]}), ["limit"])
        assert "  partition_by=3" in check(run("explain", tmp_path / "t", "--where", "partition_by=3"), 2)


class TestTimeZones:
    @pytest.mark.parametrize("zone", ["Mars/Phobos", "CET", "EST5EDT", "+19:00", "europe/paris", ""])
    def test_a_zone_that_java_and_python_do_not_agree_on_is_one_line(self, tmp_path: Path, zone: str) -> None:
        write_hive(tmp_path / "t", pa.table({"k": [1], "n": [1]}), ["k"])
        for opened in (
            lambda: penstock.hive(tmp_path / "t", "k int", timezone=zone),
            lambda: penstock.connect(tmp_path, timezone=zone),
        ):
            with pytest.raises(PredicateError, match="unknown time zone") as caught:
                opened()
            assert "\n" not in str(caught.value)
        if zone:
            assert "unknown time zone" in check(run("explain", tmp_path / "t", "--timezone", zone), 2)

    def test_the_option_holds_for_tables_by_name(self, tmp_path: Path) -> None:
        """08:00 in Tokyo is the day before in UTC."""
        table = managed_table(tmp_path, "ts timestamp", ["day(ts)"])
        table.append(pa.table({"ts": pa.array([1_779_000_000_000_000], pa.timestamp("us", "UTC"))}))
        where = "ts >= '2026-05-17 15:00:00'"  # it is 2026-05-17 06:40 in UTC, 15:40 in Tokyo
        for zone, kept in (("UTC", 0), ("Asia/Tokyo", 1)):
            done = run("explain", NAME, "--where", where, "--timezone", zone, "--warehouse", tmp_path)
            assert f"files       {kept} of 1 kept" in check(done)

    def test_a_declared_layout_has_its_own_zone_until_the_option_is_given(self, tmp_path: Path) -> None:
        rows = pa.table({"n": [1], "ts": pa.array([1_779_000_000_000_000], pa.timestamp("us", "UTC"))})
        write_hive(tmp_path / "t", rows.append_column("k", pa.array(["2026-05-17 15:40:00"])), ["k"])
        lake = penstock.connect(tmp_path / "w")
        lake.register("web.h", penstock.hive(tmp_path / "t", "k timestamp", timezone="Asia/Tokyo"))
        words = ["explain", "web.h", "--where", "k = TIMESTAMP '2026-05-17 06:40:00Z'", "--warehouse", tmp_path / "w"]
        assert "files       1 of 1 kept" in check(run(*words))
        assert "0 of 1 kept" in check(run(*words, "--timezone", "UTC"))
