"""A command that takes a predicate: what the shell took apart for want of quotes is said to be that."""

from __future__ import annotations

import click


class Predicated(click.Command):
    """A command with `--where`."""

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
