"""Iceberg's evaluators and Penstock's verdicts over the same facts: as safe as the facts allow, as sharp as theirs.

For every fact and predicate, DuckDB says which values that the fact admits make the predicate true (NaN above
everything, as in Spark). Then:

| Penstock | must hold |
|---|---|
| SKIP | no admitted value matches |
| KEEP_WHOLE | every admitted value matches |
| anything else | PyIceberg's evaluators prove no more, or what they prove is not so for Spark |
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    _StrictMetricsEvaluator,
    inclusive_projection,
    manifest_evaluator,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, PartitionFieldSummary
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

from penstock.expr.bind import Context, bind_text
from penstock.prune.judge import Pruner
from penstock.prune.verdict import Verdict
from penstock.tables.iceberg.manifest.manifest_list import ManifestLists
from penstock.tables.iceberg.metadata.schema_columns import Columns
from penstock.tables.iceberg.metadata.version import read_specs
from tests.differential.evaluator_facts import NAN, ROWS, Column, Fact, Summary, facts_of, summaries_of
from tests.differential.evaluator_predicates import Predicate, combined, plain, truths
from tests.differential.iceberg_checks import opened
from tests.fixtures.iceberg_tables import create
from tests.fixtures.manifest_writer import ADDED, listed_manifest

NINES = "9" * 28
DECIMALS = [Decimal(f"{number}.{NINES[:10]}") for number in (f"-{NINES}", -1, 0, f"{NINES[1:]}8", NINES)]
DAYS = [dt.date(*parts) for parts in ((1582, 10, 4), (1969, 12, 31), (1970, 1, 1), (2026, 5, 17), (9999, 12, 31))]
COLUMNS = (
    Column("id", 1, IntegerType(), (5, 30, 40, 79, 85), required=True),
    Column("n", 2, LongType(), (-(2**63), -1, 0, 2**40, 2**63 - 1)),
    Column("r", 3, StringType(), ("", "aa", "abc", "dC", "イロハ"), required=True),
    Column("s", 4, StringType(), ("a", "abc", "abcd", "abd", "b")),
    Column("d", 5, DoubleType(), (-float("inf"), -1.5, 0.25, 1e300, float("inf"))),
    Column("f", 6, FloatType(), (-2.5, 1.0, 1.5, 2.5, 8.0), required=True),
    Column("p", 7, DecimalType(38, 10), DECIMALS),
    Column("day", 8, DateType(), DAYS),
    Column("ts", 9, TimestampType(), [dt.datetime(day.year, day.month, day.day, 12, 30) for day in DAYS]),
    Column("st.x", 11, IntegerType(), (5, 30, 40, 79, 85), nested=True),
    Column("st.d", 12, DoubleType(), (-2.5, 1.0, 1.5, 2.5, 8.0), nested=True),
)
STRUCT = StructType(*(NestedField(c.field_id, c.name[3:], c.kind) for c in COLUMNS if c.nested))
SCHEMA = Schema(
    *(NestedField(c.field_id, c.name, c.kind, required=c.required) for c in COLUMNS if not c.nested),
    NestedField(10, "st", STRUCT),
)
COMBINED = 20


def predicates_of(column: Column) -> list[Predicate]:
    found = list(plain(column))
    return [*found, *combined(found, Random(column.name), COMBINED)]


def data_file(path: str, entry: dict[str, Any]) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=ROWS,
        file_size_in_bytes=1,
        spec_id=0,
        **entry,
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A table with a file, which nobody wrote, for every fact of every column."""
    root = tmp_path_factory.mktemp("facts")
    made = create(root, SCHEMA)
    with made.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
        for column in COLUMNS:
            for i, fact in enumerate(facts_of(column)):
                update.append_data_file(data_file(f"{column.name}/{i}", fact.entry(column)))
    return opened(root)


def compare(verdict: Verdict, true: Sequence[bool], reads: bool, matches: bool, about: str) -> str:
    """How a verdict stands to what is true and to Iceberg's evaluators; an error where it is wrong or coarser."""
    can, must = any(true), all(true)
    if not true:
        return "contradictory"
    assert verdict != Verdict.SKIP or not can, f"skipped, and a row may match: {about}"
    assert verdict != Verdict.KEEP_WHOLE or must, f"kept whole, and a row may not match: {about}"
    assert verdict == Verdict.SKIP or reads or can, f"kept where Iceberg skips: {about}"
    assert verdict == Verdict.KEEP_WHOLE or not matches or not must, f"kept in part where Iceberg matches: {about}"
    if (not reads and can) or (matches and not must):
        return "Iceberg's is not Spark's answer"
    ours, theirs = (verdict == Verdict.SKIP, verdict == Verdict.KEEP_WHOLE), (not reads, matches)
    return "equal" if ours == theirs else "sharper"


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_files_are_judged_as_sharply_as_by_icebergs_metrics_evaluators(table: Any, column: Column) -> None:
    predicates, facts = predicates_of(column), list(facts_of(column))
    kind = Columns(SCHEMA).by_id[column.field_id].type
    assert kind is not None
    files = [data_file(f"{column.name}/{i}", fact.entry(column)) for i, fact in enumerate(facts)]
    admitted = [[repr(value) for value in fact.consistent(column)] for fact in facts]
    outcomes: Counter[str] = Counter()
    for predicate, true in zip(predicates, truths(predicates, kind), strict=True):
        tasks = {task.path: task.verdict for task in table.plan(predicate.spark).files}
        inclusive = _InclusiveMetricsEvaluator(SCHEMA, predicate.iceberg)
        strict = _StrictMetricsEvaluator(SCHEMA, predicate.iceberg)
        for fact, file, values in zip(facts, files, admitted, strict=True):
            verdict = tasks.get(file.file_path, Verdict.SKIP)
            theirs = (
                inclusive.eval(file),
                not column.nested and strict.eval(file),
            )  # its strict one refuses nested fields
            outcomes[compare(verdict, [true[v] for v in values], *theirs, f"{predicate.spark} under {fact}")] += 1
    print(column.name, len(facts), "facts,", len(predicates), "predicates:", dict(outcomes))
    assert outcomes["equal"] > len(facts)


@pytest.mark.parametrize("column", [c for c in COLUMNS if not c.nested], ids=lambda column: column.name)
def test_manifests_are_judged_as_sharply_as_by_icebergs_manifest_evaluator(column: Column) -> None:
    predicates, summaries = predicates_of(column), list(summaries_of(column))
    columns = Columns(SCHEMA)
    kind = columns.by_id[column.field_id].type
    assert kind is not None
    spec = PartitionSpec(PartitionField(column.field_id, 1000, IdentityTransform(), column.name))
    metadata = new_table_metadata(SCHEMA, spec, SortOrder(), "file:///nowhere")
    manifests = [
        listed_manifest(Path(str(i)), [ADDED], partitions=[stated(s, column)]) for i, s in enumerate(summaries)
    ]
    containers = ManifestLists().containers(manifests, read_specs(metadata, columns)[0])
    outcomes: Counter[str] = Counter()
    for predicate, true in zip(predicates, truths(predicates, kind), strict=True):
        judgement = Pruner(bind_text(predicate.spark, columns.arrow, Context("UTC"))).judge(containers)
        reads = manifest_evaluator(spec, SCHEMA, inclusive_projection(SCHEMA, spec)(predicate.iceberg))
        for i, (summary, manifest) in enumerate(zip(summaries, manifests, strict=True)):
            values = [true[repr(value)] for value in summary.consistent(column)]
            about = f"{predicate.spark} under {summary}"
            theirs = summary.says_nothing or reads(manifest)  # what Iceberg skips, and Penstock does not trust
            outcomes[compare(judgement.verdict(i), values, theirs, False, about)] += 1
    print(column.name, len(summaries), "summaries,", len(predicates), "predicates:", dict(outcomes))
    assert outcomes["equal"] > len(summaries)


def stated(summary: Summary, column: Column) -> PartitionFieldSummary:
    ends = [None if end is None else to_bytes(column.kind, end) for end in (summary.lower, summary.upper)]
    return PartitionFieldSummary(summary.contains_null, summary.contains_nan, *ends)


# What Iceberg's evaluators in Java prove, and those of PyIceberg do not: single values, prefixes, fields of structs.
IN_JAVA = [
    ("r <> 'aa'", "r", Fact(ROWS, 0, None, "aa", "aa"), Verdict.SKIP),
    ("r NOT IN ('aa', 'b')", "r", Fact(ROWS, 0, None, "aa", "aa"), Verdict.SKIP),
    ("r <> 'aa'", "r", Fact(ROWS, 0, None, "aa", "dC"), Verdict.KEEP),
    ("r IN ('aa', 'b')", "r", Fact(ROWS, 0, None, "aa", "aa"), Verdict.KEEP_WHOLE),
    ("f <> 1.0", "f", Fact(ROWS, 0, 0, 1.0, 1.0), Verdict.SKIP),
    ("f <> 1.0", "f", Fact(ROWS, 0, 10, 1.0, 1.0), Verdict.KEEP),
    ("f <> 1.0", "f", Fact(ROWS, 0, None, 1.0, 1.0), Verdict.KEEP),
    ("f <> 1.0", "f", Fact(ROWS, 0, 0, NAN, NAN), Verdict.KEEP),
    ("r LIKE 'ab%'", "r", Fact(ROWS, None, None, "abc", "abd"), Verdict.KEEP_WHOLE),
    ("r LIKE 'ab%'", "r", Fact(ROWS, None, None, "aa", "abd"), Verdict.KEEP),
    ("r NOT LIKE 'ab%'", "r", Fact(ROWS, None, None, "abc", "abd"), Verdict.SKIP),
    ("r NOT LIKE 'abc%'", "r", Fact(ROWS, None, None, "abc", "abd"), Verdict.KEEP),
    ("r NOT LIKE 'x%'", "r", Fact(ROWS, None, None, "abc", "abd"), Verdict.KEEP_WHOLE),
    ("id IS NULL", "id", Fact(), Verdict.SKIP),
    ("id IS NOT NULL", "id", Fact(), Verdict.KEEP_WHOLE),
    ("st.x IS NOT NULL", "st.x", Fact(40, 40), Verdict.SKIP),
    ("st.x IS NULL", "st.x", Fact(40, 40), Verdict.KEEP_WHOLE),
    ("st.x IS NULL", "st.x", Fact(40, 0), Verdict.KEEP),
    ("st.x > 20", "st.x", Fact(ROWS, 0, None, 30, 79), Verdict.KEEP_WHOLE),
    ("st.x > 20", "st.x", Fact(40, 0, None, 30, 79), Verdict.KEEP),
]


@pytest.mark.parametrize(("where", "name", "fact", "verdict"), IN_JAVA)
def test_files_are_judged_as_sharply_as_in_java(
    tmp_path: Path, where: str, name: str, fact: Fact, verdict: Verdict
) -> None:
    column = next(column for column in COLUMNS if column.name == name)
    made = create(tmp_path, SCHEMA)
    with made.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
        update.append_data_file(data_file("f", fact.entry(column)))
    assert [task.verdict for task in opened(tmp_path).plan(where).files] == (
        [] if verdict == Verdict.SKIP else [verdict]
    )
