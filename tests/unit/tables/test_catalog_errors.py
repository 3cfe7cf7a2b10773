"""What a catalog throws, in a line that says what to do."""

from __future__ import annotations

import pytest
from pyiceberg.exceptions import NoSuchIcebergTableError

from penstock.errors import LakeError
from penstock.tables.iceberg.metadata.catalogs import clear_errors


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (
            ModuleNotFoundError("No module named 'adlfs'", name="adlfs"),
            "the catalog cannot be opened: it needs the package adlfs, which is not installed; pip install adlfs",
        ),
        (
            NoSuchIcebergTableError("Property table_type missing"),
            "the catalog has such a table, and it is not an Iceberg table; "
            "open a table of a metastore with penstock.spark_table(spark, name)",
        ),
        (
            OSError("cannot connect"),
            "the catalog cannot be opened: cannot connect; check its address, its configuration and the credentials",
        ),
    ],
)
def test_an_error_of_a_catalog_says_what_to_do(raised: Exception, message: str) -> None:
    with pytest.raises(LakeError) as told, clear_errors("the catalog", {}):
        raise raised
    assert str(told.value) == message
