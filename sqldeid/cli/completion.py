"""`sqldeid completion`: the script by which a shell completes commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from sqldeid.cli.options import Common, common, examples
from sqldeid.errors import EngineError

VARIABLE = "_SQLDEID_COMPLETE"
"""By it the script asks the program; click reads it."""


@click.command(
    epilog=examples(
        "sqldeid completion bash > ~/.local/share/bash-completion/completions/sqldeid",
        "sqldeid completion zsh > ~/.zfunc/_sqldeid    # with fpath+=~/.zfunc before compinit",
        "sqldeid completion fish > ~/.config/fish/completions/sqldeid.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common
def completion(_: Common, shell: str) -> None:
    """Print the script by which a shell completes commands, options and files.

    The script calls this program at each completion; nothing else of it is kept.
    """
    from sqldeid.cli.app import cli

    made = get_completion_class(shell)
    if made is None:
        raise EngineError(f"this version of click completes nothing in {shell}; install a newer one")
    script = made(cli, {}, "sqldeid", VARIABLE)
    click.echo(script.source_template % script.source_vars())
