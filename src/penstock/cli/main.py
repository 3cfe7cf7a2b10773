"""The command group: which commands there are.

`penstock --help` has to be there at once, so the modules of the commands import click and nothing heavy; what does the
work is imported when a command runs.
"""

import click

from penstock import __version__
from penstock.cli.adopt_command import adopt
from penstock.cli.alter_command import alter
from penstock.cli.catalog_commands import drop, namespace, rename, unregister
from penstock.cli.completion import completion
from penstock.cli.demo import demo
from penstock.cli.doctor import doctor
from penstock.cli.group import Commands
from penstock.cli.history_commands import branch, changes, fast_forward, history, rollback, tag
from penstock.cli.ingest import ingest
from penstock.cli.maintenance_commands import advise, compact, expire, sweep
from penstock.cli.report_commands import report, serve
from penstock.cli.row_commands import delete, update
from penstock.cli.sql_command import sql
from penstock.cli.sql_server import sql_server
from penstock.cli.stream_command import stream
from penstock.cli.table_commands import explain, partitions, tables

_COMMANDS = (
    *(
        adopt,
        advise,
        alter,
        branch,
        changes,
        compact,
        completion,
        delete,
        demo,
        doctor,
        drop,
        expire,
        explain,
        fast_forward,
        history,
        ingest,
    ),
    *(
        namespace,
        partitions,
        rename,
        report,
        rollback,
        serve,
        sql,
        sql_server,
        stream,
        sweep,
        tables,
        tag,
        unregister,
        update,
    ),
)
_EXAMPLES = """\b
Examples:
  penstock demo
  penstock explain ./events --where "dt = '2026-05-17' AND app = 'shop'"
  penstock ingest ./events web.events --partition-by "dt, app" --coalesce app
  penstock report web.events --where "app = 'shop'" -o report.html
"""


@click.group(
    name="penstock",
    cls=Commands,
    commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog=_EXAMPLES,
)
@click.version_option(__version__, prog_name="penstock")
def main() -> None:
    """Only the files that a query needs get through."""


if __name__ == "__main__":
    main(prog_name="penstock")
