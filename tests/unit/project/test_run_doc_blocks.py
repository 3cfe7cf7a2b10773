"""The tool that runs the blocks of the README and of `docs/` notices when they do not print what is shown."""

from pathlib import Path

import pytest

import penstock
from tools.run_doc_blocks import DocError, main, matches, read_blocks, run_file


def write(tmp_path: Path, text: str) -> Path:
    # ''' stands for the fence, so that these documents can stand in Python strings and Markdown alike.
    path = tmp_path / "page.md"
    path.write_text(text.replace("'''", "```"), encoding="utf-8")
    return path


def test_blocks_share_one_namespace_in_order(tmp_path):
    page = write(tmp_path, "'''python\nx = 1\n'''\ntext\n'''python\nprint(x + 1)\n'''\n\n'''text\n2\n'''\n")
    assert run_file(page) == 2


def test_each_file_starts_afresh(tmp_path):
    assert run_file(write(tmp_path, "'''python\nx = 1\n'''\n")) == 1
    with pytest.raises(DocError, match="NameError"):
        run_file(write(tmp_path, "'''python\nprint(x)\n'''\n"))


def test_wrong_output_is_found_with_its_line_and_a_diff(tmp_path):
    page = write(tmp_path, "# Title\n\n'''python\nprint('a')\nprint('b')\n'''\n'''text\na\nc\n'''\n")
    with pytest.raises(DocError) as caught:
        run_file(page)
    message = str(caught.value)
    assert message.startswith(f"{page}:8: ")
    assert "-c\n+b" in message


def test_missing_output_is_found(tmp_path):
    with pytest.raises(DocError):
        run_file(write(tmp_path, "'''python\nx = 1\n'''\n'''text\n1\n'''\n"))


@pytest.mark.parametrize("between", ["Some words.\n", "'''sql\nSELECT 1\n'''\n"])
def test_a_text_block_elsewhere_is_only_text(tmp_path, between):
    assert run_file(write(tmp_path, f"'''python\nprint(1)\n'''\n{between}'''text\nfree\n'''\n")) == 1


@pytest.mark.parametrize("info", ["python no-run", "console no-run", "pycon", "sh", "text", ""])
def test_only_blocks_that_say_python_or_console_run(tmp_path, info):
    assert run_file(write(tmp_path, f"'''{info}\nraise SystemExit\n'''\n")) == 0


def test_commands_run_and_print_what_stands_below_them(tmp_path):
    version = f"$ penstock --version\npenstock, version {penstock.__version__}\n"
    assert run_file(write(tmp_path, f"'''console\n{version}$ penstock \\\n  --help\n{version}'''\n")) == 1


def test_a_command_that_prints_something_else_is_found_with_its_line(tmp_path):
    page = write(tmp_path, "'''console\n$ penstock --help\n$ penstock --version\npenstock, version x\n'''\n")
    with pytest.raises(DocError, match=r"page\.md:4: (?s:.)*-penstock, version x"):
        run_file(page)


def test_a_command_may_fail_only_with_the_error_that_is_shown(tmp_path):
    command = "$ penstock explain web.events --warehouse nowhere"
    hint = "give the folder of one that is there: --warehouse FOLDER, or connect(FOLDER)"
    error = f"Error: no table 'web.events': there is no warehouse {Path.cwd()}/nowhere; {hint}"
    assert run_file(write(tmp_path, f"'''console\n{command}\n{error}\n'''\n")) == 1
    with pytest.raises(DocError, match=r"page\.md:2: .* ended with 2"):
        run_file(write(tmp_path, f"'''console\n{command}\n'''\n"))
    with pytest.raises(DocError, match="prints something else"):
        run_file(write(tmp_path, f"'''console\n{command}\nError: another one\n'''\n"))


@pytest.mark.parametrize("text", ["$ ls", "penstock --version"])
def test_only_penstock_is_run_in_a_console_block(tmp_path, text):
    with pytest.raises(DocError, match=r"page\.md:2: "):
        run_file(write(tmp_path, f"'''console\n{text}\n'''\n"))


def test_a_failing_block_has_the_lines_of_the_document_in_its_traceback(tmp_path):
    page = write(tmp_path, "# Title\n\n'''python\nx = 0\n1 / x\n'''\n")
    with pytest.raises(DocError) as caught:
        run_file(page)
    assert f'File "{page}", line 5' in str(caught.value)
    assert "ZeroDivisionError" in str(caught.value)


@pytest.mark.parametrize("source", ["raise SystemExit(0)", "x ="])
def test_a_block_that_exits_or_cannot_be_compiled_is_an_error(tmp_path, source):
    with pytest.raises(DocError, match=r"page\.md:2: the block failed"):
        run_file(write(tmp_path, f"'''python\n{source}\n'''\n"))


def test_an_indented_block_is_dedented(tmp_path):
    page = write(tmp_path, "- item\n\n  '''python\n  if True:\n      print(1)\n  '''\n\n  '''text\n  1\n  '''\n")
    assert run_file(page) == 1


def test_a_longer_fence_may_hold_a_shorter_one():
    (block,) = read_blocks("````md\n```python\n1 / 0\n```\n````\n")
    assert (block.info, block.lines) == ("md", ("```python", "1 / 0", "```"))


def test_a_block_that_is_never_closed_is_an_error(tmp_path):
    with pytest.raises(DocError, match="line 3: this block is never closed"):
        run_file(write(tmp_path, "a\n\n'''python\nprint(1)\n"))


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("a\nb", "a  \nb\n\n\n"),
        ("a\n...\nd", "a\nb\nc\nd"),
        ("a\n...\nd", "a\nd"),
        ("...", ""),
        ("a\n  ...", "a\nb\nc"),
        ("...\nb\n...\nd", "a\nb\nc\nd"),
        ("took 1.5 ms", "took 12 ms"),
        ("took 1.5 s, then 3 ms", "took 1,000.25 s, then 1.2e-05 ms"),
        ("plan   9.1 ms", "plan  12.4 ms"),
        ("bytes 25 B of 1.5 KiB", "bytes 1,000 B of  20 KiB"),
        ("(a+b)* 3 of 5", "(a+b)* 3 of 5"),
    ],
)
def test_output_matches(expected, printed):
    assert matches(expected, printed)


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("a", "b"),
        ("a\nb", "a"),
        ("a", "a\nb"),
        ("  a", "a"),
        ("a\n...\nd", "a\nb\nc"),
        ("a ... d", "a b d"),
        ("3 files in 2 ms", "4 files in 2 ms"),
        ("3 sessions", "4 sessions"),
        ("took 1 ms", "took 1 s"),
        ("took 1 ms", "took x ms"),
        ("1 KiB", "1 MiB"),
        ("3 Bars", "4 Bars"),
        (".", "x"),
    ],
)
def test_output_differs(expected, printed):
    assert not matches(expected, printed)


def test_the_command_reports_every_file(tmp_path, capsys):
    good = write(tmp_path, "'''python\nprint(1)\n'''\n")
    assert main([str(good)]) == 0
    assert main([str(tmp_path / "missing.md"), str(good)]) == 1
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out.count("page.md: 1 blocks ran") == 2
    assert "missing.md" in printed.err
