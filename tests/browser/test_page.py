"""The page in a real browser: it draws, answers the keyboard and the pointer, fits a phone, and takes no markup.

`PENSTOCK_SCREENSHOTS=docs/images` makes it write the pictures of the documentation, too.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import main
from penstock.report.live_page import Server
from penstock.report.page import page as page_of
from penstock.report.page_data import Collector
from tests.fixtures.pages import HOSTILE, collect, hive_table, hostile_table, log_table, shared_table, shredded_table
from tests.fixtures.processes import PATIENCE

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt install chromium"),
]
sync_api = pytest.importorskip("playwright.sync_api", reason="there is no Playwright: pip install playwright")

WHERE = "app = 'app-03' AND ts >= '2026-05-17' AND ts < '2026-05-19' AND duration_ms > 900"
REFUSED = "status of 400"  # a predicate that is not finished; the browser says so on its console
SIZES = {"desktop": (1100, 900), "phone": (360, 740)}
LOOKS = [
    ("desktop", "light"),
    ("phone", "dark"),
    pytest.param("desktop", "dark", marks=pytest.mark.slow),
    pytest.param("phone", "light", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        arguments = ["--disable-dev-shm-usage"]  # a container has little of it
        arguments += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        try:
            found = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=1000 * PATIENCE)
        except sync_api.Error as error:
            pytest.skip(f"Chromium does not start here: {str(error).splitlines()[0]}")
        yield found
        found.close()


class Tab:
    """A tab that remembers everything that must not happen: errors, dialogs, requests to anybody else."""

    def __init__(self, browser: Any, url: str, size: str = "desktop", scheme: str = "light") -> None:
        width, height = SIZES[size]
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE)
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: None if REFUSED in message.text else self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.troubles.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(url)

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, *failed: object) -> None:
        self.context.close()
        if failed == (None, None, None):
            assert self.troubles == []


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lake")
    log_table(root)
    shared_table(root)
    shredded_table(root)
    hostile_table(root)
    return root


def written(folder: Path, data: dict[str, Any]) -> str:
    place = folder / "page.html"
    place.write_text(page_of(data))
    return place.as_uri()


@pytest.fixture(scope="module")
def url(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("pages"), collect(penstock.connect(lake).table("web.log"), WHERE))


def violations(page: Any) -> list[tuple[str, list[str]]]:
    """What axe-core has against a page; it comes with a package and asks nobody."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="there is no axe-playwright-python")
    found = axe.Axe().run(page).response["violations"]
    return [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in found]


def shown(locator: Any) -> str:
    return str(locator.inner_text())


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_it_draws_without_an_error_and_never_scrolls_sideways(browser: Any, url: str, size: str, scheme: str) -> None:
    tab = Tab(browser, url, size, scheme)
    with tab as page:
        assert shown(page.locator("h1")) == "web.log"
        assert page.locator("#tree [role=option]").count() > 200
        assert page.locator("#funnel li strong").all_inner_texts() == ["manifests", "files", "rows", "bytes"]
        page.get_by_role("button", name="Show as table").click()
        assert page.evaluate("document.documentElement.scrollWidth") == SIZES[size][0]
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 20, 25)"
        assert dark == (scheme == "dark")
        assert tab.requests == [url]


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_axe_finds_nothing(browser: Any, lake: Path, tmp_path: Path, size: str, scheme: str) -> None:
    table = penstock.connect(lake).table("web.traffic")
    with Tab(browser, written(tmp_path, collect(table, "headers['country'] = 'DE'")), size, scheme) as page:
        page.get_by_role("button", name="Show as table").click()
        page.locator("#tree [role=option]").first.focus()
        assert violations(page) == []


def test_axe_finds_nothing_in_a_map_of_blocks_nor_in_the_live_page(browser: Any, url: str, live: Server) -> None:
    with Tab(browser, url) as page:
        assert violations(page) == []
    with Tab(browser, f"{live.url}?where=ap") as page:
        assert page.get_by_role("alert").is_visible()
        assert violations(page) == []


def test_the_pointer_shows_the_reason(browser: Any, url: str) -> None:
    with Tab(browser, url) as page:
        page.locator("[data-verdict=keep]").first.hover()
        tip = shown(page.locator("#tip"))
        assert "read, rows are checked" in tip
        assert "app = 'app-03' AND duration_ms > 900" in tip
        page.locator("[data-verdict=skip]").first.hover()
        assert "its manifest was not opened" in shown(page.locator("#tip"))
        page.mouse.move(1, 1)
        assert page.locator("#tip").is_hidden()


def test_the_keyboard_reaches_every_cell_and_shows_the_reason(browser: Any, lake: Path, tmp_path: Path) -> None:
    data = collect(penstock.connect(lake).table("web.requests"), "app = 'app-07' AND user_id > 3100", advice=False)
    with Tab(browser, written(tmp_path, data)) as page:
        page.locator("#tree [role=option]").first.focus()
        seen = [page.evaluate("document.activeElement.getAttribute('aria-label')")]
        assert page.locator("#tip").is_visible()
        assert "reason: partition" in seen[0]
        count = page.locator("#tree [role=option]").count()
        for _ in range(count - 1):
            page.keyboard.press("ArrowRight")
            seen.append(page.evaluate("document.activeElement.getAttribute('aria-label')"))
        assert len(set(seen)) == count
        assert any("verdict: read, rows are checked" in label for label in seen)
        assert page.locator("#tree [tabindex='0']").count() == 1
        page.keyboard.press("Home")
        page.keyboard.press("ArrowDown")
        label = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert label.split(";")[0] != seen[0].split(";")[0]
        assert label.split("; ")[0].removeprefix("partition: ") in shown(page.locator("#tip"))
        page.keyboard.press("Escape")
        assert page.locator("#tip").is_hidden()


def test_pieces_of_a_shared_file_are_marked_together(browser: Any, lake: Path, tmp_path: Path) -> None:
    data = collect(penstock.connect(lake).table("web.requests"), "app = 'app-07' AND ts >= '2026-05-18'", advice=False)
    with Tab(browser, written(tmp_path, data)) as page:
        page.locator("[data-verdict=along]").first.hover()
        assert page.locator(".cell.same").count() == 29
        assert "with 28 partitions more" in shown(page.locator("#tip"))


def test_only_what_is_read_can_be_shown_and_all_of_it_as_a_table(browser: Any, url: str) -> None:
    with Tab(browser, url) as page:
        page.get_by_label("only what is read").check()
        assert set(page.locator("#tree [role=option]").evaluate_all("all => all.map(e => e.dataset.verdict)")) == {
            "keep"
        }
        page.get_by_label("all files").check()
        page.get_by_role("button", name="Show as table").click()
        rows = page.locator("#map tbody tr")
        assert rows.count() == page.locator("#tree [role=option]").count()
        assert any("duration_ms > 900" in text for text in rows.all_inner_texts())


def test_areas_are_bytes(browser: Any, url: str) -> None:
    with Tab(browser, url) as page:
        found = page.evaluate(
            "tree.cells.filter(({cell}) => cell.bytes > 30000).map(({cell, node}) => ({cell, box: node.getBBox()}))"
            ".map(({cell, box}) => [cell.bytes, box.width * box.height])"
        )
        shares = [area / size for size, area in found]
        assert len(shares) > 5
        assert max(shares) / min(shares) < 1.2  # frames and labels take a little of each


def test_hostile_names_stay_text(browser: Any, lake: Path, tmp_path: Path) -> None:
    table = penstock.connect(lake).table("web.hostile")
    where = "n >= 0 AND `<i>col</i>` <> '</script><img src=x onerror=alert(1)>'"
    with Tab(browser, written(tmp_path, collect(table, where))) as page:
        page.get_by_role("button", name="Show as table").click()
        for cell in page.locator("#tree [role=option]").all():
            cell.hover()
            assert "<i>col</i>=" in shown(page.locator("#tip"))
        assert page.locator("img, i, b, script:not([type]) ~ script, svg[onload]").count() == 0
        assert page.locator("script").count() == 2
        assert HOSTILE[0] in " ".join(page.locator("#map td").all_inner_texts())
        assert "\\u202e" in " ".join(page.locator("#map td").all_inner_texts())


def test_an_empty_table_says_so(browser: Any, tmp_path: Path) -> None:
    table = penstock.connect(tmp_path).create_table("web.t", "id bigint")
    with Tab(browser, written(tmp_path, collect(table, "id > 3"))) as page:
        assert "The table has no files." in shown(page.locator("#map"))


def test_a_hostile_root_of_a_layout_stays_text(browser: Any, tmp_path: Path) -> None:
    root = tmp_path / "<img src=x onerror=alert(1)>"
    with Tab(browser, written(tmp_path, collect(hive_table(root, ["a", "b"]), "app = 'a'"))) as page:
        assert "<img src=x onerror=alert(1)>" in shown(page.locator("h1"))
        assert page.locator("img").count() == 0
        assert "List calls" in shown(page.locator("#planned"))


@pytest.fixture
def live(lake: Path) -> Iterator[Server]:
    with Server(Collector(penstock.connect(lake).table("web.requests"), advice=False)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def explained(lake: Path, where: str) -> dict[str, Any]:
    words = ["explain", "web.requests", "--warehouse", str(lake), "--json", "--where", where]
    return dict(json.loads(CliRunner().invoke(main, words).output))


def test_typing_a_predicate_changes_the_counts_to_those_of_explain(browser: Any, lake: Path, live: Server) -> None:
    tab = Tab(browser, live.url)
    with tab as page:
        assert shown(page.locator("#headline")) == "6 of 6 files are read, 6 of them whole"
        for where in ("app = 'app-07' AND ts >= '2026-05-18'", "app = 'big' AND user_id < 10", "user_id > 3000"):
            files = explained(lake, where)["files"]
            page.get_by_label("Where").fill("")
            page.get_by_label("Where").press_sequentially(where)
            page.wait_for_function("text => document.querySelector('#answer code')?.textContent === text", arg=where)
            assert shown(page.locator("#headline")).startswith(f"{files['kept']} of {files['total']} files")
            assert f"{files['kept']} of {files['total']} kept" in shown(page.locator("#funnel ol > li").nth(1))
            assert page.locator("#status").text_content() == shown(page.locator("#headline"))
        page.reload()
        assert page.get_by_label("Where").input_value() == "user_id > 3000"
        assert all(url.startswith(live.url) for url in tab.requests)


def test_a_mistake_is_shown_near_the_field_and_goes_away(browser: Any, live: Server) -> None:
    with Tab(browser, live.url, "phone") as page:
        page.get_by_label("Where").fill("ap = '<b>'")
        page.get_by_label("Where").press("Enter")
        page.wait_for_selector("#problem pre")
        assert shown(page.get_by_role("alert")) == "unknown column 'ap'; did you mean 'app'?\n  ap = '<b>'\n  ^"
        assert page.get_by_label("Where").get_attribute("aria-invalid") == "true"
        assert page.evaluate("document.documentElement.scrollWidth") == SIZES["phone"][0]
        page.get_by_label("Where").fill("app = '<b>'")
        page.wait_for_selector("#problem pre", state="detached")
        assert shown(page.locator("#headline")) == "0 of 6 files are read"


def test_refresh_shows_what_others_wrote(browser: Any, tmp_path: Path) -> None:
    table = shared_table(tmp_path)
    with Server(Collector(penstock.connect(tmp_path).table("web.requests"), advice=False)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        with Tab(browser, server.url) as page:
            table.append(pa.table(table.arrow("app = 'big' AND user_id < 10")))
            page.get_by_role("button", name="Refresh the table").click()
            total = table.plan().report.files.total
            page.wait_for_function(
                "text => document.getElementById('headline').textContent.includes(text)", arg=f"of {total} files"
            )
        server.shutdown()
        thread.join()


@pytest.mark.skipif("PENSTOCK_SCREENSHOTS" not in os.environ, reason="pictures are made when they are asked for")
def test_pictures_for_the_documentation(browser: Any, url: str) -> None:
    folder = Path(os.environ["PENSTOCK_SCREENSHOTS"])
    folder.mkdir(parents=True, exist_ok=True)
    for name, size, scheme in (("light", "desktop", "light"), ("dark", "desktop", "dark"), ("phone", "phone", "light")):
        with Tab(browser, url, size, scheme) as page:
            page.locator("#map-head").evaluate("head => head.scrollIntoView()")
            page.locator("[data-verdict=keep]").first.focus()
            page.screenshot(path=folder / f"report-{name}.png")
            assert (folder / f"report-{name}.png").stat().st_size < 300_000
