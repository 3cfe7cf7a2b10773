"""`penstock completion SHELL`: the script by which a shell completes commands, options and paths.

    bash    echo 'eval "$(penstock completion bash)"' >> ~/.bashrc
    zsh     echo 'eval "$(penstock completion zsh)"' >> ~/.zshrc
    fish    penstock completion fish > ~/.config/fish/completions/penstock.fish

The script is click's. It asks `penstock` itself, so it stays right when commands change.
"""

from __future__ import annotations

import json as jsonlib

import click
from click.shell_completion import get_completion_class

from penstock.cli.output import echo


def completion(command: click.Command, shell: str, json: bool) -> None:
    """Print the script for a shell."""
    kind = get_completion_class(shell)
    assert kind is not None, shell
    script = kind(command, {}, "penstock", "_PENSTOCK_COMPLETE").source()
    echo(jsonlib.dumps({"shell": shell, "script": script}, indent=2) if json else script)
