"""Statements of SQL with their answers, in groups: `sql_corpus.sql`.

    -- group: insert                       it has a session and a namespace of its own
    -- let: first = SELECT …               a value, for {first} in later statements
    SELECT * FROM t;
    -> 1 | a                               its rows; sorted, unless it has ORDER BY or is DESCRIBE
    SELECT nope FROM t;
    -> error                               it fails
    -- differs: why                        what Iceberg answers to the next statement is of no matter
    CREATE TABLE t (…) USING iceberg {layout};
                                           the group is executed over tables of all `LAYOUTS`, in all `MODES`

The answers are those of Iceberg's Spark runtime; Penstock's where it differs on purpose. After a change of statements,
`python -m tests.interop.sql_corpus [group …]` asks the runtime and writes its answers.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

CORPUS = Path(__file__).with_suffix(".sql")
CATALOG = "corpus"  # of the statements
ERROR = ["error"]
_GROUP, _LET, _DIFFERS = "-- group: ", "-- let: ", "-- differs: "
_LAYOUT = "{layout}"
_COMMANDS = ("delete", "update", "merge")
MODES = ("copy-on-write", "merge-on-read")


class Layout(NamedTuple):
    """How a table is partitioned, its properties, and statements behind its first rows: Penstock's with Iceberg's."""

    clause: str = ""
    properties: Mapping[str, str] = {}
    evolution: tuple[tuple[str, str], ...] = ()
    is_known_to_iceberg: bool = True  # else its table is one that is partitioned alike


_SHREDDED = {"parquet.map.shredding.columns": "m", "parquet.map.shredding.m.keys": "a,b"}
_REPLACED = (
    f"CALL {CATALOG}.system.replace_partition_field('{{group}}.t', 'app', 'bucket(3, id)')",
    f"ALTER TABLE {CATALOG}.{{group}}.t REPLACE PARTITION FIELD app WITH bucket(3, id)",
)
_COLUMNS = ["ADD COLUMN gone int", "RENAME COLUMN app TO site", "DROP COLUMN gone", "RENAME COLUMN site TO app"]
LAYOUTS = {
    "plain": Layout(),
    "partitioned": Layout("PARTITIONED BY (app)"),
    "bucketed": Layout("PARTITIONED BY (bucket(4, id), truncate(1, app))"),
    "coalesced": Layout("PARTITIONED BY (app)", {"penstock.coalesce.columns": "app"}, (), False),
    "shredded": Layout("PARTITIONED BY (app)", _SHREDDED, (), False),
    "mirrored": Layout("", {**_SHREDDED, "parquet.map.shredding.m.mode": "mirror"}, (), False),
    "evolved": Layout("PARTITIONED BY (app)", {}, (*((f"ALTER TABLE t {text}",) * 2 for text in _COLUMNS), _REPLACED)),
}


@dataclass
class Statement:
    """One statement and its answer; with a name, its answer is a value for later ones."""

    text: str
    name: str = ""
    difference: str = ""  # why Penstock's answer is not Iceberg's
    theirs: str = ""  # what Iceberg is asked instead
    answer: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """As it stands in the file."""
        if self.name:
            yield f"{_LET}{self.name} = {self.text}"
            return
        if self.difference:
            yield f"{_DIFFERS}{self.difference}"
        yield f"{self.text};"
        yield from (f"-> {row}".rstrip() for row in self.answer)


def read_corpus() -> dict[str, list[Statement]]:
    """The statements by group."""
    groups: dict[str, list[Statement]] = {}
    group: list[Statement] = []
    difference = ""
    for line in CORPUS.read_text().splitlines():
        if line.startswith(_GROUP):
            group = groups.setdefault(line.removeprefix(_GROUP), [])
        elif line.startswith(_LET):
            name, _, text = line.removeprefix(_LET).partition(" = ")
            group.append(Statement(text, name))
        elif line.startswith(_DIFFERS):
            difference = line.removeprefix(_DIFFERS)
        elif line.startswith("->"):
            group[-1].answer.append(line.removeprefix("->").strip())
        elif line:
            group.append(Statement(line.removesuffix(";"), difference=difference))
            difference = ""
    return groups


def variants(groups: Mapping[str, Sequence[Statement]]) -> dict[str, list[Statement]]:
    """Groups over one table with a layout, as groups over tables of all layouts and modes; the others as they are."""
    found: dict[str, list[Statement]] = {}
    for name, group in groups.items():
        if not any(_LAYOUT in each.text for each in group):
            found[name] = list(group)
            continue
        for layout in LAYOUTS:
            for mode in MODES:
                found[variant(name, layout, mode)] = _variant(group, layout, mode)
    return found


def variant(group: str, layout: str, mode: str) -> str:
    """The name of a group over a table of one layout, in one mode."""
    return f"{group}_{layout}_{mode.replace('-', '_')}"


def _variant(group: Sequence[Statement], name: str, mode: str) -> list[Statement]:
    layout = LAYOUTS[name]
    properties = {**layout.properties, **{f"write.{command}.mode": mode for command in _COMMANDS}}
    texts = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    changed = [
        replace(each, text=each.text.replace(_LAYOUT, f"{layout.clause} TBLPROPERTIES ({texts})")) for each in group
    ]
    first = next(i for i, each in enumerate(changed) if each.text.startswith("INSERT INTO t"))
    return [
        *changed[: first + 1],
        *(Statement(ours, theirs=theirs) for ours, theirs in layout.evolution),
        *changed[first + 1 :],
    ]


def write_corpus(groups: Mapping[str, Sequence[Statement]]) -> None:
    """Write statements and answers."""
    texts = [[f"{_GROUP}{name}", *(line for each in group for line in each.lines())] for name, group in groups.items()]
    CORPUS.write_text("\n\n".join("\n".join(lines) for lines in texts) + "\n")


def run_group(
    spark: Any,
    name: str,
    statements: Sequence[tuple[str, str]],
    settings: Mapping[str, str],
    after: Callable[[Any, str], None] | None = None,
) -> list[list[str]]:
    """Execute the statements of a group, as pairs of text and name, in a new session; an answer for each.

    An error is answered with `error` and its message. `after` is called with the session and each statement.
    """
    session = spark.newSession()
    for key, value in {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true", **settings}.items():
        session.conf.set(key, value)
    session.sql(f"CREATE NAMESPACE {CATALOG}.{name}")
    session.sql(f"USE {CATALOG}.{name}")
    values: dict[str, str] = {}
    answers = []
    for text, value in statements:
        for known in values:
            text = text.replace(f"{{{known}}}", values[known])
        answers.append(_rows(session, text.replace("{group}", name)))
        if after is not None:
            after(session, text)
        if value:
            values[value] = answers[-1].pop()
    return answers


def _rows(session: Any, text: str) -> list[str]:
    try:
        rows = [" | ".join(map(_shown, row)).strip() for row in session.sql(text).collect()]
    except Exception as error:  # Py4J's, PySpark's and, of what PySpark cannot read, Python's
        return [*ERROR, str(error)]
    if text.startswith("SET "):
        return []
    return rows if "ORDER BY" in text or text.startswith("DESCRIBE") else sorted(rows)


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        names = getattr(value, "__fields__", [""] * len(value))
        return f"({', '.join(f'{name}={_shown(each)}' for name, each in zip(names, value, strict=True))})"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_shown(key)}: {_shown(each)}' for key, each in sorted(value.items()))}}}"
    return str(value)


def twin_settings(warehouse: str) -> dict[str, str]:
    """The runtime's catalog: one with renames, namespaces and views, in an embedded database."""
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{warehouse}/catalog.db",
        ".warehouse": f"file://{warehouse}",
        ".jdbc.schema-version": "V1",
        ".cache-enabled": "false",
    }
    return {f"spark.sql.catalog.{CATALOG}{name}": value for name, value in settings.items()}


def main(names: Sequence[str]) -> None:
    """Write the answers of Iceberg's Spark runtime into the corpus; those of statements that differ stay."""
    from tests.interop.iceberg_judge import close_shared_judge, shared_judge

    groups = read_corpus()
    with tempfile.TemporaryDirectory() as folder:
        judge = shared_judge(Path(folder))
        for name in names or groups:
            statements = groups[name]
            asked = [replace(each, text=each.text.replace(_LAYOUT, "")) for each in statements]
            print(name, len(statements), file=sys.stderr)
            answers = judge.ask(run_group, name, [(each.text, each.name) for each in asked], twin_settings(folder))
            for statement, answer in zip(statements, answers, strict=True):
                if not statement.difference:
                    statement.answer = ERROR if answer[:1] == ERROR else answer
        close_shared_judge()
    write_corpus(groups)


if __name__ == "__main__":
    main(sys.argv[1:])
