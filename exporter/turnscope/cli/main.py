"""The ``turnscope`` command: a table of subcommands, each in a file of its own, imported when it is asked for.

A proxy runs under ``turnscope run`` with the bare install, so nothing beyond the standard library is imported
before the subcommand is known.
"""

from __future__ import annotations

import importlib
import importlib.util
import keyword
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import typer

_SUMMARY: Final = (
    "What did each agent turn recompute, fetch back, and wait for? Telemetry for vLLM's disaggregated serving with "
    "bidirectional KV transfer."
)
LIGHT: Final = {"run": "Run a Python proxy with the hook around it."}
"""Subcommands of the bare install: ``turnscope.cli.<name>.main(arguments)`` returns the exit code."""
COMMANDS: Final = {
    "serve": "Run the sidecar between hooks and backends.",
    "demo": "Show a recorded real run: metrics, traces and the explorer.",
    "replay": "Send a recording to a running sidecar.",
    "explore": "Show the sessions in a browser.",
    "import": "Put sessions and benchmark runs of other tools into the store.",
    "compare": "Hold two imported runs of a benchmark side by side.",
    "sessions": "Show where each session's time went.",
    "show": "Show one session: its time, its tasks and its turns.",
    "report": "Write one session as an HTML file.",
    "why": "Say where one request stops continuing another.",
    "assets": "Write dashboards, rules, runbooks and provisioning to a folder.",
    "doctor": "Say what is wrong with the set-up, and how to mend it.",
}
"""The others: ``turnscope.cli.<name>.<name>`` is a typer command; of a word of Python's, ``<name>_``."""


def load(name: str) -> Callable[..., Any]:
    """The function behind a subcommand."""
    python = f"{name}_" if keyword.iskeyword(name) else name
    function: Callable[..., Any] = getattr(importlib.import_module(f"turnscope.cli.{python}"), python)
    return function


def build(wanted: str | None) -> typer.Typer:
    """The command line: with the subcommand ``wanted``, or with all of them by name and summary only."""
    import typer

    from turnscope.cli.usage import PlainUsage

    app = typer.Typer(
        name="turnscope",
        help=_SUMMARY,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    # A callback makes typer treat even a single command as a subcommand.
    @app.callback()
    def _top(version: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
        """``main`` answers it: here it is only told of."""

    if wanted in COMMANDS:
        app.command(wanted, cls=PlainUsage)(load(wanted))
        return app
    for name, summary in {**COMMANDS, **LIGHT}.items():
        app.command(name, help=summary)(lambda: None)
    return app


def main(arguments: list[str]) -> int:
    """Run one subcommand and return its exit code."""
    wanted = arguments[0] if arguments else "--help"
    if wanted == "--version":
        sys.stdout.write(f"turnscope {version('turnscope')}\n")
        return 0
    if wanted in LIGHT:
        code: int = importlib.import_module(f"turnscope.cli.{wanted}").main(arguments[1:])
        return code
    if importlib.util.find_spec("typer") is None:
        return _bare(wanted)
    import typer

    from turnscope.cli.errors import Sorry

    try:
        return build(wanted)(arguments or [wanted], prog_name="turnscope", standalone_mode=False) or 0
    except Sorry as error:
        complaint = str(error)
    except typer.Abort:
        return 130
    except Exception as error:
        # Some versions of typer bring their own copy of click, so its errors are known by what they can do.
        if not hasattr(error, "format_message"):
            raise
        complaint = _misused(error)
    sys.stderr.write(f"turnscope: {complaint}\n")
    return 2


def _misused(error: Any) -> str:
    """One sentence for a command that does not exist, or that was called in another way than it can be: click's own
    words in our form."""
    context = getattr(error, "ctx", None)
    what = " ".join(error.format_message().split()).rstrip(".")
    # pydantic, by which some versions of typer convert, says of every value that its error is one.
    what = what.replace(": Value error, ", ": ").replace("Invalid value for ", "invalid value for ")
    what, asked, meant = what.partition(". Did you mean ")
    hint = f"did you mean {meant} Or " if asked else ""
    command = context.command_path if context is not None else "turnscope"
    return f"{what[:1].lower()}{what[1:]}: {hint}see '{command} --help'"


def _bare(wanted: str) -> int:
    """What can be said where only the hooks are installed."""
    from turnscope.model import INSTALL_ALL

    if wanted in ("-h", "--help"):
        commands = "".join(f"  {name:<9}{summary}\n" for name, summary in LIGHT.items())
        more = ", ".join(COMMANDS)
        sys.stdout.write(
            f"Usage: turnscope COMMAND [ARGS]...\n\n{_SUMMARY}\n\nCommands:\n{commands}\n"
            f"This is the bare install. For {more}: {INSTALL_ALL}\n"
        )
        return 0
    if wanted in COMMANDS:
        sys.stderr.write(f"turnscope: {wanted} is not in the bare install: {INSTALL_ALL}\n")
    else:
        sys.stderr.write(f"turnscope: there is no command {wanted!r}: see 'turnscope --help'\n")
    return 2


def run() -> None:
    """Entry point."""
    sys.exit(main(sys.argv[1:]))
