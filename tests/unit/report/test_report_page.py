"""The page holds everything it needs and nothing that somebody else wrote as markup; the command writes it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.report.page import embedded, page
from tests.fixtures.pages import HOSTILE, collect, hive_table, hostile_table, shared_table


class Reader(HTMLParser):
    """The elements of a page, and what stands in its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.inside = ""
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.inside = tag
        self.attributes += attrs
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside in self.texts:
            self.texts[self.inside][-1] += data


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page(collect(shared_table(tmp_path_factory.mktemp("lake")), advice=False))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = hostile_table(tmp_path_factory.mktemp("lake"))
    return page(collect(table, "n >= 0 AND `<i>col</i>` <> '</script><b>'"))


def test_hostile_names_and_values_add_no_element(plain: str, hostile: str) -> None:
    assert Reader(hostile).tags == Reader(plain).tags
    assert Reader(hostile).tags.count("script") == 2


def test_hostile_values_arrive_as_they_are_but_for_what_is_not_drawn(hostile: str) -> None:
    data = json.loads(Reader(hostile).texts["script"][0])
    labels = {group["label"].removeprefix("<i>col</i>=") for group in data["map"]["groups"]}
    assert labels == {*HOSTILE[:3], *HOSTILE[4:], "\\u2028\\u2029\\u202eabc\\u2066"}


@pytest.mark.parametrize("text", [*HOSTILE, "\x00\x1b[31m", "\ud800"])
def test_embedded_data_can_not_end_its_element(text: str) -> None:
    found = embedded({text: [text]})
    assert found.isascii()
    assert not set("<>&") & set(found)
    assert json.loads(found) == {text: [text]}


def test_a_title_is_escaped(tmp_path: Path) -> None:
    root = tmp_path / "</title><script>alert(1)</script>"
    found = Reader(page(collect(hive_table(root, ["a"]))))
    assert found.tags.count("script") == 2
    assert found.texts["title"][0].count("</title><script>") == 1  # as text


def test_the_policy_allows_this_style_and_this_script_only(plain: str) -> None:
    found = Reader(plain)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', plain)
    for kind, text in (("script", found.texts["script"][1]), ("style", found.texts["style"][0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy
    assert "unsafe" not in policy


def test_the_page_names_nothing_outside_of_it(plain: str) -> None:
    links = [value for name, value in Reader(plain).attributes if name in ("src", "href", "action", "data", "srcset")]
    assert links == ["data:,", "#map"]
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", plain)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|@import", plain)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_the_command_writes_a_page_and_says_where(tmp_path: Path) -> None:
    hive_table(tmp_path / "t", ["a", "b"])
    output = tmp_path / "page.html"
    where = ["--where", "app = 'a'", "--partition-by", "dt date, app string"]
    done = run("report", str(tmp_path / "t"), *where, "-o", str(output))
    assert done.exit_code == 0, done.output
    assert done.output == f"{output}: {output.stat().st_size / 1024:.1f} KiB; 4 of 8 files are read\n"
    assert output.read_text().startswith("<!DOCTYPE html>")


def test_the_command_prints_data_for_machines_and_writes_nothing(tmp_path: Path) -> None:
    shared_table(tmp_path)
    done = run("report", "web.requests", "--warehouse", str(tmp_path), "--json", "-o", str(tmp_path / "no.html"))
    assert json.loads(done.output)["table"]["name"] == "web.requests"
    assert not (tmp_path / "no.html").exists()


@pytest.mark.parametrize(
    ("output", "why"), [(".", "it is a directory"), ("no/such/page.html", "there is no directory")]
)
def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path, output: str, why: str) -> None:
    done = run("report", str(tmp_path), "-o", str(tmp_path / output))
    assert done.exit_code == 2
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_mistake_in_the_predicate_is_shown_with_its_place(tmp_path: Path) -> None:
    hive_table(tmp_path / "t", ["a"])
    done = run("report", str(tmp_path / "t"), "--where", "ap = 'a'", "-o", str(tmp_path / "page.html"))
    assert done.exit_code == 2
    assert "unknown column 'ap'" in done.stderr
    assert not (tmp_path / "page.html").exists()
