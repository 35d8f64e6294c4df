"""Command-line options made from the settings, so that each is declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pydantic
import typer

from turnscope.cli.errors import Sorry
from turnscope.config import Settings


def from_settings(command: Callable[[Settings], None]) -> Callable[..., None]:
    """``command`` with one option per setting. What is not given comes from the environment or its default."""

    def call(**given: Any) -> None:
        command(load({name: value for name, value in given.items() if value is not None}))

    parameters = []
    for name, field in Settings.model_fields.items():
        default = "" if field.default in (None, {}, [], "") else f" [{field.default}]"
        option = typer.Option(
            "--" + name.replace("_", "-"),
            help=f"{field.description}{default} (env: TURNSCOPE_{name.upper()})",
            show_default=False,
            metavar="TEXT",
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
        raise Sorry(f"{where}: {problem['msg'].removeprefix('Value error, ')}; see 'turnscope serve --help'") from None
