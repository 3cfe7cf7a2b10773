"""Runs the Python and the commands in Markdown files, so that what the documentation shows is what happens.

The ```python blocks of a file run in order in one namespace, as a reader would type them. Where a ```text
block follows with nothing but blank lines between, it must be what the block before it printed, except that

- white space at the end of a line, and blank lines at the end, do not count;
- a line `...` stands for any number of lines;
- a number before ` ms` or ` s`, or before ` B`, ` KiB`, ` MiB` or ` bytes`, stands for any number, however it is
  aligned: times differ from run to run, sizes of files from one version of Parquet's writer to the next.

A ```console block has commands, `$ penstock …`, each followed by what it prints, by the same rules; a `\\` at
the end of a line goes on in the next. Nothing below a command means that its output does not matter. A
command must succeed, unless what is shown begins with `Error:`; then it must end with exit code 2.

An expression that stands alone and has a value is an error: an interpreter would show that value, and the
document does not. Print it, or give it a name.

Only a fence that says exactly `python` or `console` is run; ```python no-run is shown and left alone. Blocks
run in this process, in the current directory, and a block that fails has the line numbers of the Markdown file
in its traceback.

    python tools/run_doc_blocks.py README.md docs/architecture.md
"""

import ast
import contextlib
import difflib
import io
import re
import shlex
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
_NUMBER = r" *\d[\d,_]*(?:\.\d+)?(?:e[+-]?\d+)?"
_MEASURED = re.compile(rf"{_NUMBER}(?= (?:m?s|B|[KM]iB|bytes)\b)")


class DocError(Exception):
    """A block that fails, or that prints something else than the document says."""


@dataclass(frozen=True)
class Block:
    """One fenced block: its info string, its lines, and the line number of its first line."""

    info: str
    lines: tuple[str, ...]
    line: int
    follows_directly: bool

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def read_blocks(text: str) -> list[Block]:
    """The fenced blocks of a Markdown text, in order."""
    blocks: list[Block] = []
    direct = False  # nothing but blank lines since the last block
    numbered = iter(enumerate(text.splitlines(), start=1))
    for number, line in numbered:
        opening = _FENCE.match(line)
        if opening is None:
            direct = direct and not line.strip()
            continue
        indent = len(opening["indent"])
        closing = re.compile(rf" *{re.escape(opening['fence'])}{re.escape(opening['fence'][0])}*\s*$")
        body: list[str] = []
        for _, inner in numbered:
            if closing.match(inner):
                break
            body.append(_unindented(inner, indent))
        else:
            raise DocError(f"line {number}: this block is never closed")
        blocks.append(Block(opening["info"].strip(), tuple(body), number + 1, direct))
        direct = True
    return blocks


def _unindented(line: str, indent: int) -> str:
    return line[min(indent, len(line) - len(line.lstrip(" "))) :]


def run_file(path: Path) -> int:
    """Run the blocks of one file; how many there were. Raises DocError for the first that is wrong."""
    try:
        blocks = read_blocks(path.read_text(encoding="utf-8"))
    except DocError as error:
        raise DocError(f"{path}: {error}") from None
    namespace: dict[str, object] = {"__name__": "__main__"}
    count = 0
    for index, block in enumerate(blocks):
        if block.info == "console":
            _run_commands(block, path)
            count += 1
        if block.info != "python":
            continue
        printed = _run_block(block, path, namespace)
        count += 1
        following = blocks[index + 1] if index + 1 < len(blocks) else None
        if following is not None and following.info == "text" and following.follows_directly:
            _compare(following, printed, path)
    return count


def _run_block(block: Block, path: Path, namespace: dict[str, object]) -> str:
    printed = io.StringIO()
    padded = "\n" * (block.line - 1) + block.text + "\n"
    try:
        typed = ast.Interactive(ast.parse(padded, str(path)).body)
        code = compile(typed, str(path), "single", dont_inherit=True)
        with contextlib.redirect_stdout(printed), _shown_values() as shown:
            exec(code, namespace)
    except (Exception, SystemExit) as error:
        raise DocError(f"{path}:{block.line}: the block failed\n{traceback.format_exc()}") from error
    for line, value in shown:
        raise DocError(f"{path}:{line}: print this or give it a name; an interpreter would show {value}")
    return printed.getvalue()


@contextlib.contextmanager
def _shown_values() -> Iterator[list[tuple[int, str]]]:
    """What an interpreter would show of the expressions that run meanwhile, each with its line."""
    shown: list[tuple[int, str]] = []

    def show(value: object) -> None:
        if value is not None:
            shown.append((sys._getframe(1).f_lineno, repr(value)[:100]))

    before, sys.displayhook = sys.displayhook, show
    try:
        yield shown
    finally:
        sys.displayhook = before


def _run_commands(block: Block, path: Path) -> None:
    for line, command, expected in _commands(block, path):
        where = f"{path}:{line}: "
        words = shlex.split(command)
        if words[:1] != ["penstock"]:
            raise DocError(f"{where}only penstock is run here, and this is {command!r}; say console no-run")
        code, printed = _run_command(words[1:])
        if code != (2 if expected.text.startswith("Error:") else 0):
            raise DocError(f"{where}{command} ended with {code}\n{printed}")
        if expected.text.strip():
            _compare(expected, printed, path)


def _commands(block: Block, path: Path) -> Iterator[tuple[int, str, Block]]:
    """The commands of a block, each with its line and with what is shown below it."""
    if not block.text.startswith("$ "):
        raise DocError(f"{path}:{block.line}: a console block begins with a command: $ penstock …")
    for found in re.finditer(r"^\$ ((?:.*\\\n)*.*)\n?((?:(?!\$ ).*\n?)*)", block.text, re.MULTILINE):
        line = block.line + block.text[: found.start()].count("\n")
        below = Block("text", tuple(found[2].splitlines()), line + found[1].count("\n") + 1, True)
        yield line, found[1].replace("\\\n", " "), below


def _run_command(arguments: list[str]) -> tuple[int, str]:
    """The exit code, and what a terminal would show: both streams as they come."""
    from click.testing import CliRunner

    from penstock.cli.main import main as penstock

    result = CliRunner().invoke(penstock, arguments, prog_name="penstock")
    failed = result.exception is not None and not isinstance(result.exception, SystemExit)
    trace = "".join(traceback.format_exception(result.exception)) if failed else ""
    return result.exit_code, result.output + trace


def _compare(expected: Block, printed: str, path: Path) -> None:
    if matches(expected.text, printed):
        return
    diff = difflib.unified_diff(_stripped(expected.text), _stripped(printed), "document", "printed", lineterm="")
    raise DocError("\n".join([f"{path}:{expected.line}: the block before prints something else", *diff]))


def matches(expected: str, printed: str) -> bool:
    """Whether `printed` is what the document says, by the rules at the top of this module."""
    pattern = "".join(
        r"(?:[^\n]*\n)*" if line.strip() == "..." else f"{_line_pattern(line)}\n" for line in _stripped(expected)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _stripped(printed))) is not None


def _line_pattern(line: str) -> str:
    return _NUMBER.join(re.escape(piece) for piece in _MEASURED.split(line))


def _stripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def main(arguments: list[str]) -> int:
    """Run the files that are named, all of them, and say what became of each."""
    if not arguments:
        print("usage: run_doc_blocks.py FILE.md ...", file=sys.stderr)
        return 2
    failed = 0
    for name in arguments:
        try:
            print(f"{name}: {run_file(Path(name))} blocks ran")
        except (DocError, OSError) as error:
            print(error, file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
