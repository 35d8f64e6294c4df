"""``turnscope assets``: write dashboards, rules, runbooks and provisioning out of the package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import typer

from turnscope.cli import arguments
from turnscope.cli.errors import Sorry

FOLDERS: Final = ("dashboards", "alerts", "deploy")
SUFFIXES: Final = (".json", ".yml", ".md")
"""Of what is written; what makes the dashboards and rules is not."""


def assets(
    to: str = typer.Argument(..., metavar="DIR", help="Where to write them; it is made if it is not there."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Also where a file of another content is in the way."),
) -> None:
    """Write what stands behind a sidecar into a folder: Grafana dashboards, Prometheus rules with their runbooks, and
    files that provision Prometheus, Alertmanager, Tempo and Grafana.

    Begin with deploy/README.md there. Nothing that you have changed is overwritten unless you say so.
    """
    folder, found = Path(arguments.text("DIR", to)).expanduser(), dict(_found())
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
    for top in FOLDERS:
        count = sum(name.startswith(f"{top}/") for name in found)
        typer.echo(f"{folder / top}: {count} files")


def _found() -> Iterator[tuple[str, str]]:
    """Path below the folder to content."""
    packed = resources.files("turnscope") / "assets"
    # Installed in place there is no copy of them: they stand at the top of the tree.
    top: Traversable = packed if packed.is_dir() else Path(__file__).resolve().parents[3]
    for name in FOLDERS:
        if (top / name).is_dir():
            yield from _files(top / name, name)


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _files(entry, f"{path}/{entry.name}")
        elif entry.name.endswith(SUFFIXES):
            yield f"{path}/{entry.name}", entry.read_text(encoding="utf-8")


def _differs(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") != text
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, UnicodeError):
        return True
