"""The pages of docs/: what they show is what happens, their links lead somewhere, and the reference leaves nothing out.

Blocks can be pasted into an interpreter line by line. Blocks that need something from outside (an S3 server, a catalog,
a download) say `no-run`; here they run too, with the tests' own in its place. The pages that start Spark run in one
process of their own, the README among them, so that there is one Spark and its working directory is theirs.
"""

from __future__ import annotations

import ast
import codeop
import inspect
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock import errors
from penstock.cli.main import main
from penstock.maps.shred_rule import DUPLICATES, Shred
from penstock.maps.shred_rule import to_properties as shred_properties
from penstock.maps.shredding import chosen_property
from penstock.spark.stream.stream_reader import _PLACE
from penstock.stream.stream_options import StreamOptions
from tests.s3.server import KEY_ID, SECRET, running
from tests.unit.project.public_interface import public_names
from tools.check_imports import LAYERS
from tools.run_doc_blocks import Block, DocError, read_blocks, run_file

ROOT = Path(__file__).parents[3]
DOCS, README = ROOT / "docs", ROOT / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))
SPARK = [
    DOCS / "how-to/spark-sql.md",
    DOCS / "how-to/change-rows.md",
    DOCS / "how-to/metastore-tables.md",
    DOCS / "tutorial.md",
    DOCS / "how-to/pruned-stream.md",
    README,
]
HOW_TO = [page for page in PAGES if page.parent.name == "how-to" and page not in SPARK]
FROM_OUTSIDE = [DOCS / "how-to" / f"{name}.md" for name in ("hive-on-s3", "iceberg-catalog", "other-engines")]
INFOS = {"python", "python no-run", "console", "console no-run", "text", "yaml", "bash"}
PROPERTY = re.compile(
    r"(penstock\.(coalesce|map\.shredding|stream)|parquet\.map\.shredding|write|commit|gc)\.[\w.-]*\w"
)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def reference(name: str) -> str:
    return (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8")


def missing(names: object, text: str) -> list[str]:
    """Those of some names that stand nowhere as code."""
    code = " ".join(re.findall(r"`([^`\n]+)`", text))
    return sorted(n for n in names if not re.search(rf"(?<![\w.-]){re.escape(n)}(?![\w-])", code))  # type: ignore[attr-defined]


def everything_runs(page: Path, folder: Path, **instead: str) -> Path:
    """A copy of a page in which nothing is left out, and some texts stand in the place of others."""
    text = re.sub(r"^(```\w+) no-run$", r"\1", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for old, new in instead.items():
        assert old in text, f"{page} does not say {old!r}"
        text = text.replace(old, new)
    copy = folder / page.name
    copy.write_text(text, encoding="utf-8")
    return copy


def run_apart(folder: Path, *pages: Path, first: str = "") -> None:
    """Run pages in a process of their own, after what a shell should do first."""
    script = [sys.executable, str(ROOT / "tools/run_doc_blocks.py"), *map(str, pages)]
    command = ["bash", "-c", f'set -e\n{first}\nexec "$@"', "bash", *script]
    environment = {**os.environ, "PYICEBERG_HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-5000:]


# What pages show


@pytest.mark.parametrize("page", [page for page in PAGES if page not in SPARK], ids=name_of)
def test_blocks_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_file(page)


@pytest.mark.spark
def test_blocks_of_pages_with_spark_print_what_the_page_shows(tmp_path):
    run_apart(tmp_path, *SPARK)


@pytest.mark.spark
@pytest.mark.slow
def test_how_to_pages_are_no_trouble_in_the_tutorials_folder_or_to_each_other(tmp_path):
    run_apart(tmp_path, *SPARK, *HOW_TO)


def test_hive_on_s3_is_true_of_a_real_server(request, tmp_path, tmp_path_factory, monkeypatch):
    server = running(request.config, tmp_path_factory.mktemp("s3"))
    bucket = server.new_bucket()
    for day, app, ids in ((14, "shop", [1]), (14, "blog", [2]), (15, "shop", [1, 2]), (15, "blog", [3])):
        folder = bucket / f"events/dt=2026-05-{day}/app={app}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": ids}), folder / "1.parquet")
    ours = {"http://localhost:9000": server.endpoint, "your-key-id": KEY_ID, "your-secret": SECRET}
    page = everything_runs(FROM_OUTSIDE[0], tmp_path, **ours, **{"s3://lake": server.url(bucket)})
    configuration = next(b.text for b in read_blocks(page.read_text(encoding="utf-8")) if b.info == "yaml")
    (tmp_path / ".pyiceberg.yaml").write_text(configuration)
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run_file(page)


def test_the_catalog_page_is_true_with_the_variables_that_it_has(tmp_path):
    page = everything_runs(FROM_OUTSIDE[1], tmp_path)
    (variables,) = [block for block in read_blocks(page.read_text(encoding="utf-8")) if block.info == "bash"]
    run_apart(tmp_path, page, first=variables.text)


def test_duckdb_reads_what_the_page_shows(tmp_path, monkeypatch):
    found = {name: find_spec(f"duckdb_extension_{name}") for name in ("avro", "iceberg")}
    places = [Path(spec.submodule_search_locations[0]) for spec in found.values() if spec is not None]
    files = [path for place in places for path in place.rglob("*.duckdb_extension")]
    assert len(files) == len(found)
    load = "; ".join(f"""duckdb.sql("LOAD '{path}'")""" for path in files)
    extensions = {'duckdb.sql("INSTALL iceberg")\n': "", 'duckdb.sql("LOAD iceberg")': load}
    monkeypatch.chdir(tmp_path)
    run_file(everything_runs(FROM_OUTSIDE[2], tmp_path, **extensions))


def test_nothing_that_looks_like_code_escapes_the_tests():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = read_blocks(text)
        assert {block.info for block in blocks} <= INFOS | {""}, page
        assert page in FROM_OUTSIDE or not any("no-run" in block.info for block in blocks), page
        inside = {line for block in blocks for line in block.lines}
        loose = [
            line for line in page.read_text(encoding="utf-8").splitlines() if re.match(r" {4}\$? ?penstock ", line)
        ]
        assert set(loose) <= inside, page


# What an interpreter makes of them


def typed(block: Block) -> None:
    """Compile a block as an interpreter does that gets it line by line: a blank line ends what is indented."""
    compiled, waiting = codeop.CommandCompiler(), []
    for number, line in enumerate((*block.lines, ""), start=block.line):
        waiting.append(line)
        try:
            if compiled("\n".join(waiting), symbol="single") is not None:
                waiting.clear()
        except SyntaxError as error:
            raise AssertionError(f"line {number} cannot be typed after the lines before it: {error}") from error
    assert not waiting, f"line {block.line}: the block is not complete"


@pytest.mark.parametrize("page", [*PAGES, README], ids=name_of)
def test_blocks_can_be_pasted_into_an_interpreter(page):
    for block in read_blocks(page.read_text(encoding="utf-8")):
        if block.info.split()[:1] == ["python"]:
            typed(block)


def python(text: str) -> Block:
    return Block("python", tuple(text.splitlines()), line=1, follows_directly=False)


@pytest.mark.parametrize(
    "text",
    [
        "for i in range(2):\n    print(i)\nprint('end')",
        "with open('f') as f:\n    f.read()\nx = 1",
        "def f():\n    x = 1\n\n    return x\n\n\nf()",
        "f(\n    1,",
        "x =",
    ],
)
def test_a_block_that_an_interpreter_refuses_is_found(text):
    with pytest.raises(AssertionError, match="line"):
        typed(python(text))


@pytest.mark.parametrize(
    "text",
    [
        "for i in range(2):\n    print(i)\n\nprint('end')",
        "def f():\n    if x:\n        return 1\n    else:\n        return 2\n\n\nf()",
        "try:\n    f()\nexcept ValueError:\n    g()",
        "# words\n\nf(\n    1,\n\n    2,\n)\nx = '''\na\n\nb'''",
    ],
)
def test_a_block_that_an_interpreter_takes_is_fine(text):
    typed(python(text))


def test_a_value_that_only_an_interpreter_would_show_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = [1]\nfor i in x:\n    x.pop()\n```\n", encoding="utf-8")
    with pytest.raises(DocError, match=r"page\.md:4: .* would show 1"):
        run_file(page)
    page.write_text("```python\nx = [1]\nx.sort()\nprint(x.pop())\n```\n\n```text\n1\n```\n", encoding="utf-8")
    assert run_file(page) == 1


# Links, and the site


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=name_of)
def test_links_lead_to_pages_and_headings(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


def anchors_of(page: Path) -> set[str]:
    """The headings of a page as the site names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The built site; a warning is an error."""
    pytest.importorskip("mkdocstrings", reason="the site needs pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_loads_nothing_from_elsewhere(site):
    built = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert len(built) == len(PAGES) + 1  # and one for what is not found
    for path, text in built.items():
        assert not re.search(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?//', text), path
        assert "```" not in text, f"{path} has a fence that became no block"


def test_the_guide_for_contributors_names_every_package_in_order_and_only_tests_that_exist():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?) \|", guide, re.MULTILINE)
    assert tuple(re.findall(r"`(\w+)`", " ".join(rows))) == LAYERS
    assert [path for path in re.findall(r"tests/[\w/]+(?:\.py)?", guide) if not (ROOT / path).exists()] == []


# The reference is complete


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_and_option_is_in_the_reference(command):
    text = reference("command-line")
    assert f"[`{command}`](#{command})" in text
    section = re.search(rf"^## {command}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    options = [name for p in main.commands[command].params if isinstance(p, click.Option) for name in p.opts]
    assert missing(options, section[1]) == []


def test_no_command_in_the_reference_is_gone():
    told = set(re.findall(r"^## ([a-z-]+)$", reference("command-line"), re.MULTILINE))
    assert told == set(main.commands)


def test_every_public_name_is_in_the_reference():
    assert missing(penstock.__all__, reference("python")) == []


def test_everything_reachable_from_public_names_is_in_the_python_reference(site):
    page = (site / "reference/python.html").read_text(encoding="utf-8")
    documented = set(re.findall(r'id="(penstock\.[\w.]+)"', page))
    assert sorted(public_names(ROOT / "src") - documented) == []


def test_every_option_is_in_the_reference():
    text = reference("options")
    assert missing(inspect.signature(penstock.hive).parameters, text) == []
    assert missing(StreamOptions.__dataclass_fields__, text) == []
    assert missing(_PLACE.values(), text) == []


def test_every_error_is_in_the_reference():
    kinds = {n for n, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    told = set(re.findall(r"^\| `(\w+)` \|", reference("errors"), re.MULTILINE))
    assert told == kinds


def test_every_property_of_tables_is_in_the_reference():
    text = reference("properties")
    rules = {"<column>": Shred("k", mode="mirror"), "other": Shred(auto=True)}
    ours = {name.replace(".other.", ".<column>.") for name in shred_properties(rules)}
    assert missing({*ours, chosen_property("<column>"), DUPLICATES, *literal_properties()}, text) == []


def literal_properties() -> set[str]:
    """Texts in the source that are names of properties."""
    found = set()
    for path in (ROOT / "src/penstock").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and PROPERTY.fullmatch(node.value):
                found.add(node.value)
    assert len(found) > 10
    return found


def test_the_numbers_are_those_of_the_readme():
    readme = README.read_text(encoding="utf-8")
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    numbers = readme.split("\n## Numbers\n")[1].split("\n## ")[0]
    assert [line for line in numbers.splitlines() if line.startswith("|") and line not in page] == []
