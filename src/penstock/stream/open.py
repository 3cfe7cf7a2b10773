"""The feed of a table."""

from __future__ import annotations

from typing import Any

from penstock.stream.feed import Feed
from penstock.stream.hive import HiveFeed
from penstock.stream.iceberg import IcebergFeed
from penstock.stream.options import StreamOptions
from penstock.tables.hive.table import HiveTable


def open_feed(table: Any, options: StreamOptions) -> Feed:
    """What is new in a table; what is wrong with the options is said here."""
    return HiveFeed(table, options) if isinstance(table, HiveTable) else IcebergFeed(table, options)
