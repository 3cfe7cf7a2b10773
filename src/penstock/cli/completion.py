"""`penstock completion SHELL`: the script by which a shell completes commands, options and paths.

    bash    echo 'eval "$(penstock completion bash)"' >> ~/.bashrc
    zsh     echo 'eval "$(penstock completion zsh)"' >> ~/.zshrc
    fish    penstock completion fish > ~/.config/fish/completions/penstock.fish

The script is click's. It asks `penstock` itself, so it stays right when commands change.
"""

import click
from click.shell_completion import get_completion_class

from penstock.cli import options
from penstock.cli.output import echo, echo_json


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@options.json
@click.pass_context
def completion(ctx: click.Context, shell: str, json: bool) -> None:
    """Print the script that makes SHELL complete commands, options and paths: eval "$(penstock completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None, shell
    script = kind(ctx.find_root().command, {}, "penstock", "_PENSTOCK_COMPLETE").source()
    if json:
        echo_json({"shell": shell, "script": script})
    else:
        echo(script)
