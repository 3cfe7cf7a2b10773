"""The part of the contract that is about the members of `Source`: descriptions, streams, Spark, versions and names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import LakeError, SchemaError
from penstock.prune.verdict import Verdict
from penstock.stream.feed import Limit
from penstock.stream.stream_options import as_options
from penstock.tables.file_metadata import spark_url
from penstock.tables.source import Source
from tests.contract.corpus import KINDS

# What only other packages call is no method: people see what a table has by `dir(table)`.
INTERNAL = {"bind", "check_readable", "known_schema", "outputs", "partitions_of", "plan_predicate", "reopened"}
TableOf = Callable[[str], Any]


def same(found: pa.Table, expected: pa.Table) -> bool:
    """Whether two tables have the same rows, in whichever order of rows and columns; NaN equals itself."""
    if sorted(found.column_names) != sorted(expected.column_names):
        return False
    found = found.select(expected.column_names).sort_by("id")
    return found.schema.types == expected.schema.types and str(found.to_pylist()) == str(expected.to_pylist())


class SourceContract:
    """What every kind of table provides, whatever it prunes."""

    kind: str
    has_snapshots = False
    is_on_storage = True  # Spark reads files
    is_streamed = True  # if it is on a storage

    def test_it_is_a_source_and_shows_only_what_is_public(self, table_of: TableOf) -> None:
        table = table_of("string")
        assert isinstance(table, Source)
        assert INTERNAL & set(dir(table)) == set()

    def test_a_description_names_the_table_and_its_partition_fields(self, table_of: TableOf) -> None:
        table = table_of("string")
        description = table.describe()
        told = description.to_dict()
        assert (description.kind, [field.split()[0] for field in description.partitioned_by]) == (self.kind, ["k"])
        assert {"name", "kind", "location", "partitioned_by"} <= told.keys()
        assert all(told.values())
        assert description.facts[:2] == [
            (self.kind, description.name), ("partitions", ", ".join(description.partitioned_by)),
        ]  # fmt: skip
        assert repr(table).startswith(f"{type(table).__name__}({description.name!r}, ")
        assert all(name in table._repr_html_() for name in (description.name, *table.schema.names))

    def test_a_description_has_every_file_once(self, table_of: TableOf) -> None:
        table = table_of("string")
        pieces, plan = table.describe().pieces, table.plan()
        assert sorted(pieces.names.to_pylist()) == sorted(plan.files.paths.to_pylist())
        assert (len(pieces.labels), pieces.sizes.sum()) == (15, plan.report.files.bytes)
        assert all(path.startswith(table.describe().location) for path in pieces.names.to_pylist())

    @pytest.mark.parametrize("where", ["k = 'shop'", "k LIKE 's%' AND n = 1", "TRUE", "FALSE"])
    def test_a_description_judges_every_file_as_the_plan_does(self, table_of: TableOf, where: str) -> None:
        table = table_of("string")
        plan, description = table.plan(where), table.describe()
        pieces = description.pieces
        judgements = description.judge(plan.pruner, pieces)
        verdicts = [verdict for judgement in judgements for verdict in judgement.verdicts.tolist()]
        kept = [name for name, verdict in zip(pieces.names.to_pylist(), verdicts, strict=True) if verdict]
        assert (Verdict.SKIP, sorted(kept)) == (0, sorted(plan.files.paths.to_pylist()))
        assert len(description.matching_pieces(judgements, pieces)) == len(pieces.of_file)

    def test_a_description_without_hot_keys_has_none_and_always_advice(self, table_of: TableOf) -> None:
        description = table_of("string").describe()
        assert description.hot_keys(description.pieces) == []
        assert description.advice()["said"]

    @pytest.mark.parametrize(("where", "ids"), [(None, 30), ("k = 'shop'", 2), ("k = 'shop' AND n = 1", 1)])
    def test_a_stream_reads_what_is_there_and_then_nothing(
        self, table_of: TableOf, where: str | None, ids: int
    ) -> None:
        table, options = table_of("string"), as_options({} if where is None else {"where": where})
        if not (self.is_on_storage and self.is_streamed):
            with pytest.raises(LakeError, match="cannot be streamed"):
                table.feed(options)
            return
        feed = table.feed(options)
        step = feed.step(feed.start(), Limit())
        parts = [part for work in step.work for part in feed.rows().read(work)]
        assert same(pa.concat_tables(parts), table.arrow(where).sort_by("id"))
        assert (sum(part.num_rows for part in parts), feed.schema.names) == (ids, table.schema.names)
        assert len(feed.step(step.end, Limit()).work) == 0

    def test_spark_gets_relations_or_one_clear_error(self, table_of: TableOf) -> None:
        if self.is_on_storage:
            relations = table_of("string").relations()
            assert callable(relations.rows)
            assert callable(relations.planned_rows)
        else:
            with pytest.raises(LakeError, match="has no files for Spark"):
                table_of("string").relations()

    def test_refresh_returns_the_table_itself(self, table_of: TableOf) -> None:
        table = table_of("string")
        before = table.arrow()
        assert table.refresh() is table
        assert same(table.arrow(), before.sort_by("id"))

    def test_a_version_can_be_read_or_there_is_one_clear_error(self, table_of: TableOf) -> None:
        table = table_of("string")
        if not self.has_snapshots:
            with pytest.raises(LakeError, match=f"{self.kind} .* has no snapshots; leave the snapshot out"):
                table.at(1)
            return
        snapshot = table.describe().snapshot
        assert same(table.at(snapshot).arrow(), table.arrow().sort_by("id"))
        assert f"snapshot={snapshot}" in repr(table)
        assert "snapshot='nosuch'" in repr(table.at("nosuch"))

    def test_a_path_selects_files(self, table_of: TableOf) -> None:
        table = table_of("int")
        for path in table.plan().files.paths.to_pylist():
            assert table.plan(path=spark_url(path)).files.paths.to_pylist() == [path]
        assert len(table.plan("_metadata.file_size < 0").files) == 0

    def test_a_column_may_be_a_key_of_a_map(self, make: Any) -> None:
        maps = pa.array([[("a", "1")], [("b", "2")], None], pa.map_(pa.string(), pa.string()))
        table = make(pa.table({"id": pa.array([0, 1, 2], pa.int64()), "k": ["x", "x", "y"], "headers": maps}), ["k"])
        found = table.arrow("headers['a'] = '1' OR k = 'y'", columns=["headers['a']", "ID"])
        assert sorted(found.to_pylist(), key=str) == [{"headers['a']": "1", "id": 0}, {"headers['a']": None, "id": 2}]

    def test_a_column_that_does_not_exist_is_one_clear_error(self, table_of: TableOf) -> None:
        for columns, message in ((["kk"], "no column 'kk'; did you mean 'k'"), ("k", "columns takes a list of names")):
            with pytest.raises(SchemaError, match=message):
                table_of("string").arrow(columns=columns)

    def test_the_corpus_is_what_these_tests_count(self) -> None:
        assert len(KINDS["string"].values) == 15
