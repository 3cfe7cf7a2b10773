"""Advice: the skew as it is, what each rule would make of it, and what to do; all from statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.lake.advise.advice import Advice, describe
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import data_files as files
from tests.fixtures.managed_tables import managed_table

APPS = 24


def rows(days: int = 2, apps: int = APPS, each: int = 1) -> pa.Table:
    pairs = [(day, f"app{i:02d}") for day in range(days) for i in range(apps) for _ in range(each)]
    return pa.table({"day": pa.array([d for d, _ in pairs], pa.int32()), "app": [a for _, a in pairs]})


def made(root: Path, *parts: pa.Table, partition_by: Any = ("day", "app"), **options: Any) -> ManagedTable:
    table = managed_table(root, "day int, app string", partition_by, **options)
    for part in parts:
        table.append(part)
    return table


def option(advice: Advice, *columns: str) -> Any:
    (found,) = [each for each in advice.options if each.columns == columns]
    return found


def test_many_small_partitions_are_advised_to_share_files(tmp_path: Path) -> None:
    table = made(tmp_path, rows())
    advice = table.advise()
    sizes = [task.size for task in table.plan().files]
    assert (advice.files, advice.partitions, advice.unknown_files) == (2 * APPS, 2 * APPS, 0)
    assert (advice.bytes, advice.mean_bytes) == (sum(sizes), sum(sizes) // len(sizes))
    assert (advice.quantiles[0], advice.quantiles[1]) == (min(sizes), max(sizes))
    assert [(band.below, band.partitions) for band in advice.bands] == [
        (64 << 10, 48), (1 << 20, 0), (8 << 20, 0), (32 << 20, 0), (128 << 20, 0), (None, 0),
    ]  # fmt: skip
    assert advice.bands[0].bytes == sum(sizes)
    assert (advice.opens.mean, advice.opens.most, advice.opens.scan) == (1.0, 1, 48)
    assert [(each.columns, each.files) for each in advice.options] == [
        (("day",), 24),
        (("app",), 2),
        (("day", "app"), 1),
    ]
    by_app = option(advice, "app")
    assert (by_app.ratio, by_app.mean_bytes, by_app.opens.mean, by_app.opens.scan) == (24.0, sum(sizes) // 2, 1.0, 2)
    # All columns together would make one file instead of two; a rule with fewer columns does nearly as well.
    assert advice.suggested == penstock.Coalesce("app", below="32MB")
    with pytest.warns(DeprecationWarning, match=r"Advice\.said is deprecated"):
        assert advice.said == advice.advice
    assert advice.advice.endswith("48 → 2 files")
    assert 'set_coalesce(penstock.Coalesce("app"))' in advice.advice


def test_the_advice_is_what_compaction_then_does(tmp_path: Path) -> None:
    table = made(tmp_path, rows())
    advice = table.advise()
    table.set_coalesce(advice.suggested)
    pending = table.advise()
    assert (pending.files, pending.compacted.files) == (48, 2)
    assert (pending.suggested, pending.advice) == (
        advice.suggested, "the rule is good as it is; compact() would bring 48 → 2 files",
    )  # fmt: skip
    table.compact()
    done = table.advise()
    assert (done.files, done.partitions, done.advice) == (2, 48, "the rule is good as it is")
    assert (done.opens.mean, done.opens.most, done.opens.scan) == (1.0, 1, 2)


def test_point_queries_count_every_file_that_holds_the_partition(tmp_path: Path) -> None:
    table = made(tmp_path, rows(1, 3), rows(1, 3), rows(1, 1), coalesce=["app"])
    advice = table.advise()
    assert (advice.files, advice.partitions) == (3, 3)
    assert (advice.opens.mean, advice.opens.most) == (pytest.approx(7 / 3), 3)
    assert advice.advice == "the rule is good as it is; compact() would bring 3 → 1 files"


def test_few_files_need_no_rule(tmp_path: Path) -> None:
    advice = made(tmp_path, rows(2, 3)).advise()
    assert (advice.suggested, advice.advice) == (None, "no rule is needed: none would save many files")
    assert option(advice, "day", "app").ratio == 6.0


def test_large_partitions_are_left_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.lake.advise import advise

    table = made(tmp_path, rows(1, 40))
    monkeypatch.setattr(advise, "_BELOW", 1)
    advice = table.advise()
    assert [each.files for each in advice.options] == [40, 40, 40]
    assert advice.suggested is None


def test_the_target_size_of_the_table_is_used(tmp_path: Path) -> None:
    table = made(tmp_path, rows(1, 40), properties={"write.target-file-size-bytes": "2000"})
    size = sum(task.size for task in table.plan().files)
    assert option(table.advise(), "app").files == round(size / 2000)


def test_files_that_end_because_their_records_are_long_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = penstock.Coalesce.__init__.__kwdefaults__ or {}
    shorter = defaults | {"record_bytes": 6 * (len("app00") + 14)}
    monkeypatch.setattr(penstock.Coalesce.__init__, "__kwdefaults__", shorter)
    table = made(tmp_path, rows())
    by_app = option(table.advise(), "app")
    assert by_app.files == 2 * APPS / 6
    table.set_coalesce(by_app.rule)
    assert table.compact().files_after == by_app.files


def test_only_columns_that_a_table_is_partitioned_by_as_they_are_are_tried(tmp_path: Path) -> None:
    table = made(tmp_path, rows(2, 20), partition_by=["bucket(2, day)", "app"])
    assert [each.columns for each in table.advise().options] == [("app",)]
    hidden = managed_table(tmp_path / "b", "day int, app string", ["bucket(2, day)"])
    hidden.append(rows())
    advice = hidden.advise()
    assert (advice.options, advice.suggested) == ((), None)
    assert advice.partitions == advice.files > 0


def test_files_that_say_nothing_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = penstock.Coalesce("app", below="1MB")
    table = made(tmp_path, rows(1, 2), coalesce=rule)
    monkeypatch.setattr(files, "encode_logical", lambda *args, **options: None)
    table.append(rows(2, 3))
    advice = table.advise()
    assert (advice.files, advice.partitions, advice.unknown_files) == (3, 2, 2)
    assert "2 of them do not say which logical partitions they hold" in advice.explain()
    other = made(tmp_path / "b", rows(2, 3), coalesce=rule)
    assert (other.advise().unknown_files, other.advise().partitions) == (2, 0)
    assert "compact()" in other.advise().advice


@pytest.mark.parametrize(
    ("partition_by", "data", "said"),
    [
        ((), rows(), "the table is not partitioned, so there is nothing that could share files"),
        (("app",), None, "the table has no files yet; ask again when it has some"),
    ],
)
def test_where_there_is_nothing_to_advise_it_is_said(tmp_path: Path, partition_by: Any, data: Any, said: str) -> None:
    table = made(tmp_path, *([] if data is None else [data]), partition_by=partition_by)
    advice = table.advise()
    assert (advice.advice, advice.suggested, advice.options) == (said, None, ())
    assert said in str(advice)
    assert json.loads(json.dumps(advice.to_dict()))["advice"] == said


def test_no_data_file_is_opened(tmp_path: Path) -> None:
    table = made(tmp_path, rows(), coalesce=["app"])
    for task in table.plan().files:
        Path(task.path.removeprefix("file://")).unlink()
    assert table.advise().partitions == 48


def test_it_is_shown_as_a_table_and_as_numbers(tmp_path: Path) -> None:
    advice = made(tmp_path, rows(), coalesce=penstock.Coalesce("app", values=["app01"])).advise()
    text = advice.explain()
    assert str(advice) == text
    lines = text.splitlines()
    assert max(map(len, lines[:-1])) <= 120
    assert any(line.startswith("rule        app: 1 listed") for line in lines)
    row = next(line for line in lines if line.startswith("app: below 32.0 MiB"))
    assert row.split()[4:5] + row.split()[-2:] == ["2", "24.0×", "fewer"]
    told = json.loads(json.dumps(advice.to_dict()))
    assert (told["files"], told["partitions"], told["suggested"]) == (
        48, 48, {"columns": ["app"], "below": 32 << 20, "values": []},
    )  # fmt: skip
    assert [each["files"] for each in told["options"]] == [24, 2, 1]
    assert told["rule"]["values"] == [["app01"]]
    assert describe(None) == "none"
