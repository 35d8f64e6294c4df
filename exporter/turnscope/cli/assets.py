"""``turnscope assets``: write dashboards, rules, runbooks and provisioning out of the package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from turnscope import shipped
from turnscope.cli import arguments
from turnscope.cli.errors import Sorry
from turnscope.model import plural, shown

_URL: Final = re.compile(r"https?://[\w.\-~:/?#\[\]@!$&*+,;=%]+")
"""Without quotes, spaces and braces: it is put into YAML, JSON and templates as it is."""


def assets(
    to: Annotated[str, typer.Argument(metavar="DIR", help="Where to write them; it is made if it is not there.")],
    explorer: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Where your people reach 'turnscope explore': runbooks, dashboards and, unless you say --runbooks, "
            "alerts link there.",
        ),
    ] = shipped.EXPLORER,
    runbooks: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where alerts and panels say that runbooks are: the address up to the file's name, such as "
            "https://wiki.example/runbooks/ for what you serve of DIR/alerts/runbooks. By default the page of the "
            "explorer that shows them.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Also where a file of another content is in the way.")
    ] = False,
) -> None:
    """Write what stands behind a sidecar into a folder: Grafana dashboards, Prometheus rules with their runbooks, and
    files that provision Prometheus, Alertmanager, Tempo and Grafana.

    Begin with deploy/README.md there. Nothing that you have changed is overwritten unless you say so.
    """
    of_explorer = _address("--explorer", explorer, "https://explorer.example").rstrip("/")
    of_runbooks = (
        None if runbooks is None else _folder(_address("--runbooks", runbooks, "https://wiki.example/runbooks/"))
    )
    folder = Path(arguments.text("DIR", to)).expanduser()
    found = {
        name: shipped.addressed(text, explorer=of_explorer, runbooks=of_runbooks) for name, text in shipped.files()
    }
    in_the_way = [] if overwrite else [name for name, text in found.items() if _differs(folder / name, text)]
    if in_the_way:
        more = f" and {len(in_the_way) - 1} more" if len(in_the_way) > 1 else ""
        raise Sorry(f"{folder / in_the_way[0]}{more} would be overwritten: choose another folder, or say --overwrite")
    try:
        for name, text in found.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Sorry(f"{folder} cannot be written ({error.strerror}): choose another folder") from None
    for top in shipped.FOLDERS:
        count = sum(name.startswith(f"{top}/") for name in found)
        typer.echo(f"{folder / top}: {plural(count, 'file')}")


def _address(option: str, url: str, example: str) -> str:
    """The address as it is. Raises ``Sorry``."""
    if not _URL.fullmatch(url):
        raise Sorry(f"{option}: {shown(url)} is no address: write it like {example}")
    return url


def _folder(url: str) -> str:
    """To which a file's name can be appended."""
    return url if url.endswith(("/", "=")) else f"{url}/"


def _differs(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") != text
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, UnicodeError):
        return True
