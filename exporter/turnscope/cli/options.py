"""Command-line options made from the settings, so that each is declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pydantic
import typer

from turnscope.cli.errors import Sorry
from turnscope.config import Settings
from turnscope.model import shown


def from_settings(command: Callable[[Settings], None]) -> Callable[..., None]:
    """``command`` with one option per setting. What is not given comes from the environment or its default."""

    def call(**given: Any) -> None:
        command(load({name: value for name, value in given.items() if value is not None}))

    parameters = []
    for name, field in Settings.model_fields.items():
        default = "" if field.default in (None, {}, [], "") else f" [{field.default}]"
        extra: Any = field.json_schema_extra
        option = typer.Option(
            "--" + name.replace("_", "-"),
            help=f"{field.description}{default} (env: TURNSCOPE_{name.upper()})",
            show_default=False,
            metavar=extra["metavar"],
        )
        # Text whatever its type: the settings convert and check it, for the environment and for options alike.
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=str | None)
        )
        option.default = None
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    call.__name__, call.__doc__ = command.__name__, command.__doc__
    return call


def load(given: dict[str, Any]) -> Settings:
    """The settings with ``given`` on top of the environment. Raises ``Sorry`` for a value that cannot be."""
    try:
        return Settings(**given)
    except pydantic.ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        where = f"--{name.replace('_', '-')}" if name in given else f"TURNSCOPE_{name.upper()}"
        raise Sorry(f"{where}: {_wrong(problem)}; see 'turnscope serve --help'") from None


def _wrong(problem: Any) -> str:
    """What is wrong with a value, in our own words."""
    kind, given, limits = problem["type"], shown(str(problem["input"])), problem.get("ctx", {})
    if kind == "value_error":
        return str(limits["error"])
    for begin, what in (("int_", "a whole number"), ("float_", "a number"), ("finite_", "a number")):
        if kind.startswith(begin):
            return f"{given} is not {what}"
    for name, what in (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than")):
        if name in limits:
            limit = limits[name]
            return f"{given} is not possible, it must be {what} {int(limit) if limit == int(limit) else limit}"
    return f"{given} is not possible"
