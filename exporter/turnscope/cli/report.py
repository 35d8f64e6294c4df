"""``turnscope report SESSION``: one session as an HTML file."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Annotated

import typer

from turnscope.cli import arguments
from turnscope.cli.errors import Sorry
from turnscope.cli.session_store import StoreOption, found_id, opened
from turnscope.model import shown
from turnscope.store import whole


def report(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="The session's id, or a part of it that no other contains.")
    ],
    store: StoreOption = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write it; an existing file is replaced. [turnscope-SESSION.html in this folder]",
        ),
    ] = None,
) -> None:
    """Write one session as a single HTML file, to send, to print or to keep: where its time went, what happened when,
    what reuse could give, its turns, answers that may be wrong, and what the figures cover.

    The file holds no prompt, answer or tool content, runs no script and asks nothing of the network.
    """
    from turnscope_app.report import build, file_name

    wanted = arguments.text("SESSION", session)
    target = None if output is None else Path(arguments.text("--output", output)).expanduser()
    with opened(store) as reader:
        session_id = found_id(reader, wanted)
        found = whole.read(reader, session_id, time.time_ns())
        if found is None:
            raise Sorry(f"the session {shown(session_id)} has just gone from {reader.url}: try again")
    target = target or Path(file_name(session_id))
    write(target, build(found, time.time_ns()))
    typer.echo(f"Written: {target}")


def write(target: Path, page: str) -> None:
    """The whole file or nothing: it is written beside its place and moved there. Raises ``Sorry``."""
    if target.is_dir():
        raise Sorry(f"--output: {shown(str(target))} is a folder: name a file in it")
    beside = target.with_name(f".{target.name[:100]}.{os.getpid()}.part")
    try:
        beside.write_text(page, encoding="utf-8")
        beside.replace(target)
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        why = getattr(error, "strerror", None) or str(error)
        raise Sorry(
            f"--output: {shown(str(target))} cannot be written ({why}): name a file in a folder of yours"
        ) from None
