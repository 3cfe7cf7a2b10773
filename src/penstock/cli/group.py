"""What becomes of an error, and of Ctrl-C, in any command.

Bad input is one clear line on stderr (with the excerpt of the text where there is one) and exit code 2, the same as
click's own usage errors. So is what Spark says of a query: its log is in a file, which the line names where it helps.
Ctrl-C is exit code 130. Every other exception is a defect of Penstock and keeps its traceback.
"""

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import click

from penstock.cli.output import echo, with_options
from penstock.errors import PenstockError, printable
from penstock.spark.session.process import COMMAND, LOG, interrupted, one_line


class _BadInput(click.ClickException):
    exit_code = 2


class Commands(click.Group):
    """A group whose commands may raise PenstockError."""

    def invoke(self, ctx: click.Context) -> Any:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        with _spark_log() as log:
            try:
                return super().invoke(ctx)
            except PenstockError as error:
                command = self.get_command(ctx, ctx.invoked_subcommand or "")
                raise _BadInput(with_options(str(error), command)) from error
            except click.UsageError as error:
                raise click.UsageError(printable(error.format_message()), error.ctx) from None
            except KeyboardInterrupt:
                _stop(ctx)
            except Exception as error:  # of Spark, Py4J or Java, which are not imported for commands without Spark
                message = _message_of_spark(error, log)
                if message is None:
                    raise
                if interrupted.is_set():  # Spark's client may make an error of its own of Ctrl-C
                    _stop(ctx)
                raise _BadInput(message) from error


class Predicated(click.Command):
    """A command with `--where`: what the shell took apart for want of quotes is said to be that."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As every command does; words left over after `--where` are most often the rest of the predicate."""
        arguments = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if "extra argument" not in error.message or not any(word.split("=")[0] == "--where" for word in arguments):
                raise
            message = f"{error.message}; put the predicate in quotes: --where \"app = 'x'\""
            raise click.UsageError(message, ctx) from None


def _stop(ctx: click.Context) -> NoReturn:
    echo("stopped", err=True)
    ctx.exit(130)


@contextmanager
def _spark_log() -> Iterator[str]:
    """The file that Spark logs to, should it be started; it stays when an error names it."""
    configured = os.environ.get(LOG)
    path = configured or os.path.join(tempfile.gettempdir(), f"penstock-spark-{secrets.token_hex(6)}.log")
    os.environ.update({LOG: path, COMMAND: "1"})
    message = ""
    try:
        yield path
    except _BadInput as error:
        message = error.message
        raise
    finally:
        del os.environ[COMMAND]
        if configured is None:
            del os.environ[LOG]
            if path not in message:
                with suppress(OSError):  # mostly there is none
                    os.unlink(path)


def _message_of_spark(error: Exception, log: str) -> str | None:
    """One line of an error of Spark's, which only a command that has started Spark can meet."""
    if "pyspark" not in sys.modules:
        return None
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import AnalysisException, PySparkException

    if isinstance(error, AnalysisException):
        return one_line(error)  # of the query; the log knows no more
    return f"{one_line(error)}; Spark's log: {log}" if isinstance(error, (PySparkException, Py4JError)) else None
