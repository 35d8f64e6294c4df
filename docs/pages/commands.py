"""docs/commands.md."""

from __future__ import annotations

import importlib
import textwrap
from typing import Any

import typer

from docs.pages.markdown import HEAD, table
from turnscope.cli.main import COMMANDS, LIGHT, build


def _usage(parameter: Any) -> str:
    """How it is typed: ``--port PORT``, ``FILE...``, ``--text / --no-text``."""
    if parameter.param_type_name == "argument":
        return f"{parameter.metavar}{'...' if parameter.nargs < 0 else ''}"
    names = " / ".join(filter(None, (", ".join(parameter.opts), ", ".join(parameter.secondary_opts))))
    return names + ("" if parameter.is_flag else f" {parameter.metavar}")


def _default(parameter: Any) -> str:
    """As ``--help`` tells it, where there is one."""
    if parameter.param_type_name == "argument" or parameter.is_flag or not parameter.show_default:
        return ""
    if parameter.default in (None, ""):
        return ""
    return f" [default: {getattr(parameter.default, 'value', parameter.default)}]"


def page() -> str:
    """Every command with its arguments and options, as ``--help`` tells them."""
    out = [f"{HEAD}# Commands\n\nExit codes: 0 done, 1 the answer is no (findings, differences), 2 not possible.\n"]
    for name in COMMANDS:
        # Some versions of typer bring their own copy of click: its types are not named here.
        group: Any = typer.main.get_command(build(name))
        command = group.commands[name]
        text = textwrap.dedent(command.help).replace("``", "`").strip()
        out.append(f"\n## `turnscope {name}`\n\n{text}\n")
        rows = [(f"`{_usage(p)}`", f"{p.help or ''}{_default(p)}") for p in command.params]
        if rows:
            out.append("\n" + table(("option", "what"), rows))
    for name in LIGHT:
        text = importlib.import_module(f"turnscope.cli.{name}").HELP
        out.append(f"\n## `turnscope {name}`\n\n```text\n{text.strip()}\n```\n")
    return "".join(out)
