"""What notebooks show: the right content, and names and values that are text whatever is in them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from IPython.core.interactiveshell import InteractiveShell

import penstock
from penstock import MemoryTable
from penstock.lake.advise.advice import Advice
from penstock.lake.managed_table import ManagedTable
from penstock.prune.notebook import cell, columns, facts, grid
from penstock.prune.plan import Plan
from penstock.tables.hive.hive_table import HiveTable
from tests.fixtures.managed_tables import managed_table

HOSTILE = "</td><script>alert(\"1\")</script><img src=x onerror='a'>&amp;\u202eb"
TAGS = {"table", "thead", "tbody", "tr", "th", "td", "p"}


class Page(HTMLParser):
    """The rows of the tables of a page; every tag is known and closed, and has no attribute that is not meant."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert {name for name, _ in attrs} <= {"style", "scope"}
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    def fact(self, head: str) -> str:
        return next(row[1] for row in self.rows if row[0] == head and len(row) == 2)


def shown(thing: Plan | HiveTable | ManagedTable | Advice) -> Page:
    """What a notebook would show: without a script, and with no colour that only one theme can show."""
    text = thing._repr_html_()
    assert "<script" not in text
    assert "<style" not in text
    assert set(re.findall(r"(?:color|background)[^;\"]*", text)) == {"color:inherit"}
    assert set(re.findall(r"rgba?\([^)]*\)|#[0-9a-f]{3,6}\b", text)) <= {"rgba(128,128,128,.35)"}
    assert len(text) < 50_000
    return Page(text)


def test_a_cell_is_text() -> None:
    assert Page(f"<table><tr><td>{cell(HOSTILE)}</td></tr></table>").rows == [[HOSTILE.replace("\u202e", "\\u202e")]]
    assert cell("a\nb\tc") == "a\\nb\\tc"


def test_a_long_text_is_cut_in_the_middle() -> None:
    long = cell("a" * 1_000 + "b" * 1_000)
    assert len(long) < 400
    assert long.startswith("aaa")
    assert long.endswith("bbb")


def test_nothing_is_shown_of_no_rows() -> None:
    assert grid(("a",), []) == ""
    assert Page(facts([])).rows == []


def test_rows_that_are_not_shown_are_counted() -> None:
    assert grid(("a",), [("1",)], more=1_234).endswith("<p>… and 1,234 more</p>")
    wide = pa.schema([(f"c{i}", pa.int64()) for i in range(60)])
    assert columns(wide).endswith("<p>… and 10 more</p>")


def test_a_plan() -> None:
    rows = pa.table({"app": [f"a{i // 2:02}" for i in range(50)], "n": range(50)})
    table = MemoryTable.from_rows(rows, partition_by=["app"])
    page = shown(table.plan("app >= 'a05' AND n % 2L = 0"))
    assert page.fact("where") == "app >= 'a05' AND n % 2L = 0"
    assert page.fact("files").startswith("20 of 25 kept (80 %)")
    assert page.fact("skipped") == "5 files by partition: app >= 'a05'"
    head = page.rows.index(["file", "size", "rows", "partition", "verdict", "left to check"])
    assert page.rows[head + 1][2:] == ["2", "app=a05", "KEEP", "n % 2L = 0"]
    assert len(page.rows) == head + 1 + 10
    assert "… and 10 more" in table.plan("app >= 'a05'")._repr_html_()


def test_a_plan_that_keeps_nothing() -> None:
    table = MemoryTable.from_rows(pa.table({"app": ["a"]}), partition_by=["app"])
    assert shown(table.plan("app = 'b'")).fact("files") == "0 of 1 kept (0 %)"


def test_a_plan_of_hostile_names_and_values(tmp_path: Path) -> None:
    rows = pa.table({HOSTILE: [HOSTILE, "x"]})
    page = shown(MemoryTable.from_rows(rows, partition_by=[f"`{HOSTILE}`"]).plan(f"`{HOSTILE}` <> 'x'"))
    visible = HOSTILE.replace("\u202e", "\\u202e")
    assert visible in page.fact("where")
    assert any(f"{visible}={visible}" in row for row in page.rows)


@pytest.mark.parametrize("hostile", [False, True])
def test_a_hive_layout(tmp_path: Path, hostile: bool) -> None:
    column = "<b>&'\"" if hostile else "n"
    (tmp_path / "app=a").mkdir()
    pq.write_table(pa.table({column: [1]}), tmp_path / "app=a" / "a.parquet")
    page = shown(penstock.hive(tmp_path, "app string"))
    assert (page.fact("Hive layout"), page.fact("partitions")) == (str(tmp_path), "app string")
    assert page.rows[2:] == [["column", "type"], [column, "bigint"], ["app", "string"]]


def test_a_managed_table(tmp_path: Path) -> None:
    schema = "ts timestamp, app string, `<i>` bigint, headers map<string,string>"
    table = managed_table(tmp_path, schema, ["day(ts)", "app"], coalesce=["app"], shred={"headers": ["<k>", "b"]})
    page = shown(table)
    assert page.fact("Iceberg table") == "web.t"
    assert page.fact("partitions") == "day(ts), app"
    assert page.fact("rows") == "none yet"
    assert page.fact("shared files") == "app: below 32.0 MiB"
    assert page.fact("hot keys") == "headers: <k>, b"
    assert ["<i>", "bigint"] in page.rows
    assert not any(row[0].startswith("__map_shred") for row in page.rows)


def test_a_managed_table_with_rows_and_its_advice(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "app string, n bigint", ["app"])
    table.append(pa.table({"app": [HOSTILE, "b"], "n": [1, 2]}))
    page = shown(table)
    assert (page.fact("rows"), page.fact("files")) == ("2", "2")
    assert page.fact("snapshot") == str(table.version.snapshot_id)
    assert shown(table.at(table.version.snapshot_id)).fact("rows") == "2"
    page = shown(table.advise())
    assert page.fact("table") == "web.t"
    assert page.fact("partitions") == "2 logical ones"
    assert ["what would be", "files", "mean size", "one partition", "at most", "against now"] in page.rows
    assert page.fact("advice") == table.advise().advice


def test_advice_about_hostile_names() -> None:
    page = shown(Advice(HOSTILE, advice=HOSTILE))
    visible = HOSTILE.replace("\u202e", "\\u202e")
    assert (page.fact("table"), page.fact("advice")) == (visible, visible)


def test_partitions_stay_an_arrow_table_and_a_notebook_shows_them_as_a_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why nothing is put around it is said in `penstock.prune.notebook`."""
    table = managed_table(tmp_path, "app string, n bigint", ["app"])
    table.append(pa.table({"app": [HOSTILE, None], "n": [1, 2]}))
    assert type(table.partitions()) is pa.Table  # without a notebook nothing happens
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shell = InteractiveShell.instance()
    try:
        html = shell.display_formatter.formatters["text/html"]
        other = pa.table({"a": [1]})
        html.for_type(pa.Table, lambda _: "of another library")
        for _ in range(2):
            found = table.partitions()
        assert type(found) is pa.Table
        page = Page(html(found))
        assert page.rows[0][:3] == ["spec_id", "app", "rows"]
        assert {row[1] for row in page.rows[1:]} == {HOSTILE.replace("\u202e", "\\u202e"), "NULL"}
        assert html(found.slice(0, 1)).count("<tr>") == 2
        assert html(other) == "of another library"
        html.pop(pa.Table)
        assert html(other) is None
        many = MemoryTable.from_rows(pa.table({"k": range(60)}), partition_by=["k"]).partitions()
        assert html(other) is None
        assert html(many).endswith("<p>… and 10 more</p>")
    finally:
        InteractiveShell.clear_instance()
