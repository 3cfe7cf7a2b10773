"""Iceberg tables whose data files are ORC and Avro, as Iceberg's Spark runtime writes them.

Run in the process of the judge: `judge.ask(write_formats, name)`. All but those of `types` have columns that Spark's
own readers of ORC and Avro read as Iceberg does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.interop.iceberg_written import MERGE_ON_READ, SOURCE, Writer

COLUMNS = """id BIGINT, app STRING, n INT, b BIGINT, d DATE, ts TIMESTAMP, p DECIMAL(9, 2), x DOUBLE, f FLOAT,
    ok BOOLEAN, raw BINARY, s STRUCT<a: INT, b: STRING>, l ARRAY<INT>, m MAP<STRING, BIGINT>"""
NAMES = """id, app, n, b, d, IF(id = 7, TIMESTAMP'2025-11-02 05:30:00', ts) AS ts, p, IF(id % 7 = 6, -0.0D, x) AS x,
    CAST(x AS FLOAT) AS f, ok, raw, s, l, m"""
FORMAT = "write.format.default"
IN_PLACE = dict.fromkeys(MERGE_ON_READ, "copy-on-write")
TYPES = """id BIGINT, d DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, big DECIMAL(38, 10), `we.ird` INT, `we ird-é` STRING,
    m MAP<INT, STRUCT<a: INT, b: STRING>>, l ARRAY<STRUCT<x: INT, y: ARRAY<TIMESTAMP>>>"""


def _written_in(form: str) -> Callable[[Writer], None]:
    def write(table: Writer) -> None:
        table.create("app", columns=COLUMNS, **{FORMAT.replace(".", "__"): form, **IN_PLACE})
        table.insert(0, 20, NAMES)
        table.insert(20, 48, NAMES)
        table.delete("id % 10 = 4")

    return write


def _mixed(table: Writer) -> None:
    table.create("ok", columns=COLUMNS, **IN_PLACE)
    for i, form in enumerate(("parquet", "orc", "avro")):
        table.alter(f"SET TBLPROPERTIES ('{FORMAT}' = '{form}')")
        table.insert(i * 12, i * 12 + 12, NAMES)
    table.alter("ALTER COLUMN n TYPE BIGINT", "ALTER COLUMN f TYPE DOUBLE", "ALTER COLUMN p TYPE DECIMAL(18, 2)")
    table.alter("ADD COLUMN later STRING", "ADD COLUMN s.c INT", "ADD PARTITION FIELD bucket(2, id)")
    for i, form in enumerate(("orc", "avro", "parquet")):
        table.alter(f"SET TBLPROPERTIES ('{FORMAT}' = '{form}')")
        new = "named_struct('a', s.a, 'b', s.b, 'c', 9) AS s"
        select = NAMES.replace(" s,", f" {new},") + ", 'new' AS later"
        table.insert(36 + i * 4, 40 + i * 4, select)


def _renamed_in(form: str) -> Callable[[Writer], None]:
    def write(table: Writer) -> None:
        table.create(columns=COLUMNS, **{FORMAT.replace(".", "__"): form})
        table.insert(0, 20, NAMES)
        table.alter("RENAME COLUMN n TO m2", "RENAME COLUMN b TO n", "DROP COLUMN app", "ADD COLUMN app INT")
        table.alter("RENAME COLUMN s.a TO z")
        columns = "id, n AS m2, b AS n, d, ts, p, x, CAST(x AS FLOAT) AS f, ok, raw, s, l, m, 5 AS app"
        table.insert(20, 40, columns)

    return write


def _deleted_in(form: str, version: int) -> Callable[[Writer], None]:
    def write(table: Writer) -> None:
        table.create("bucket(2, id)", version, COLUMNS, **{FORMAT.replace(".", "__"): form})
        table.insert(0, 24, NAMES)
        table.insert(24, 48, NAMES)
        table.delete("id % 5 = 2")
        table.update("n = 1000", "id % 7 = 3")

    return write


def _types_in(form: str) -> Callable[[Writer], None]:
    def write(table: Writer) -> None:
        table.create(columns=TYPES, **{FORMAT.replace(".", "__"): form})
        for day in ("1969-12-31", "2026-01-01") + (() if form == "orc" else ("1500-03-01", "9999-12-31")):
            table.sql(f"""INSERT INTO {table.name} VALUES
                (1, DATE'{day}', TIMESTAMP'{day} 12:00:00.123456', TIMESTAMP_NTZ'{day} 12:00:00.123456',
                 12345678901234567890.123, 1, 'x', map(1, named_struct('a', 1, 'b', 'u'), 2, NULL),
                 array(named_struct('x', 1, 'y', array(TIMESTAMP'{day} 01:00:00.000001')), NULL)),
                (2, NULL, NULL, NULL, -0.5, NULL, '', map(), array()),
                (3, DATE'{day}', TIMESTAMP'{day} 00:00:00', TIMESTAMP_NTZ'{day} 00:00:00', NULL, 7, NULL, NULL, NULL)
            """)

    return write


def _times(table: Writer) -> None:
    """Dates and moments about which Spark's reader of ORC and Iceberg's do not agree."""
    table.create(columns="id INT, ts TIMESTAMP, d DATE", write__format__default="orc")
    table.sql(f"INSERT INTO {table.name} VALUES (1, TIMESTAMP'1900-01-02 00:00:00', DATE'1582-10-15'), (2, NULL, NULL)")
    table.sql(f"INSERT INTO {table.name} VALUES (3, TIMESTAMP'1999-01-01 00:00:00', DATE'1582-10-14')")
    table.sql(f"INSERT INTO {table.name} VALUES (4, TIMESTAMP'1850-01-01 00:00:00', DATE'1999-01-01')")


FORMATS: dict[str, Callable[[Writer], None]] = {
    "in_orc": _written_in("orc"),
    "in_avro": _written_in("avro"),
    "mixed": _mixed,
    "renamed_orc": _renamed_in("orc"),
    "renamed_avro": _renamed_in("avro"),
    "deleted_orc": _deleted_in("orc", 2),
    "deleted_avro": _deleted_in("avro", 2),
    "vectors_orc": _deleted_in("orc", 3),
    "vectors_avro": _deleted_in("avro", 3),
    "types_orc": _types_in("orc"),
    "types_avro": _types_in("avro"),
    "times": _times,
}


def write_formats(spark: Any, name: str) -> None:
    """Write one table."""
    spark.sql(SOURCE)
    FORMATS[name](Writer(spark, name))
