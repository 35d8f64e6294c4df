"""The ``turnscope`` command: every subcommand is registered here and lives in a file of its own."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from turnscope.cli.doctor import doctor
from turnscope.cli.errors import Sorry
from turnscope.cli.replay import replay
from turnscope.cli.serve import serve

app = typer.Typer(
    name="turnscope",
    help="What did each agent turn recompute, fetch back, and wait for? Telemetry for vLLM's disaggregated serving "
    "with bidirectional KV transfer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve)
app.command()(replay)
app.command()(doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("turnscope"))
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


def run() -> None:
    """Entry point."""
    try:
        app()
    except Sorry as error:
        typer.echo(f"turnscope: {error}", err=True)
        sys.exit(2)
