"""Opening the store for the commands that read it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from turnscope.cli import arguments
from turnscope.cli.errors import Sorry
from turnscope.cli.options import load
from turnscope.model import shown
from turnscope.store import StoreError, StoreReader, summing
from turnscope.store.session_queries import SummaryFilter

FRESH: Final = 200
"""Sessions that are summed up here at most, where the sidecar has not done it yet."""
ALIKE: Final = 5
"""Ids that are named where several contain what was typed."""

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FOLDER|URL",
        help="The store that 'turnscope serve' writes: a folder or s3://bucket/folder. [as turnscope serve] "
        "(env: TURNSCOPE_STORE)",
    ),
]


@contextlib.contextmanager
def opened(store: str | None) -> Iterator[StoreReader]:
    """A reader of the store that was named, else of the one that the sidecar's settings name. What cannot be read is
    ``Sorry``."""
    url = load({}).store_url if store is None else arguments.text("--store", store)
    try:
        reader = StoreReader(url)
        try:
            yield reader
        finally:
            reader.close()
    except StoreError as error:
        raise Sorry(str(error)) from None


def found_id(reader: StoreReader, wanted: str) -> str:
    """``wanted`` if it is a session's id, else the only id that contains it; raises ``Sorry`` where there is none."""
    if reader.turns(wanted, limit=1).total or reader.spans(wanted, limit=1).total:
        return wanted
    newer, _ = summing.fresh(reader, time.time_ns(), FRESH)
    alike, total = reader.summaries(SummaryFilter(text=wanted), limit=ALIKE, fresh=newer)
    if total != 1:
        names = ", ".join(shown(one.session_id) for one in alike)
        more = f": {total:,} ids contain it, as {names}" if total else ": 'turnscope sessions' lists those there are"
        raise Sorry(f"there is no session {shown(wanted)} in {reader.url}{more}")
    return alike[0].session_id
