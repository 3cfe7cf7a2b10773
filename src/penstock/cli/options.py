"""Arguments and options that several commands have: one name means one thing, and `--help` has one text for it."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import click


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator; `--help` shows them in this order."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


PATH = click.Path(readable=False)  # a name is fine too; shells complete it as a path
table = click.argument("table", type=PATH)
table_name = click.argument("table")
where = click.option("--where", help="A predicate in Spark SQL.")
path = click.option("--path", help="A LIKE pattern that a file's URL must match.")
no_advice = click.option("--no-advice", is_flag=True, help="Leave the advice out, which reads a sample of maps.")
json = click.option("--json", is_flag=True, help="Print for machines.")
catalog = click.option("--catalog", help="A catalog of PyIceberg's configuration instead of the warehouse's own.")
storage = click.option("--storage", help="A catalog of PyIceberg's configuration whose storage settings are used.")
run_id = click.option("--run-id", help="The name of this run: a run that has been committed is not committed again.")
branch = click.option("--branch", default="main", show_default=True, help="The branch that is meant.")
_partition_by = click.option(
    "--partition-by", default="auto", show_default=True, help="Partition columns of a path: 'dt date, app string'."
)
file_format = click.option("--format", help="The format of a path's files: csv.  [default: as the first file shows]")
file_option = click.option("--option", multiple=True, help="How such files are read, as Spark says it: header=true.")
_file_schema = click.option(
    "--schema", help="The columns of a path's files: 'id bigint, v double'.  [default: as above]"
)
_warehouse = click.option("--warehouse", default="./warehouse", show_default=True, envvar="PENSTOCK_WAREHOUSE",
                          show_envvar=True, help="Where tables are known by name.")  # fmt: skip
_snapshot = click.option("--snapshot", help="A snapshot's id, a time, a tag or a branch of an Iceberg table.")
timezone = click.option("--timezone", help="The zone of times without one.  [default: UTC, or as it was registered]")
lake = _together(_warehouse, catalog)
place = _together(_partition_by, file_format, file_option, _file_schema, storage, timezone, lake)
version = _together(place, _snapshot)
