"""Opening the store for the commands that read it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated

import typer

from turnscope.cli import arguments
from turnscope.cli.errors import Sorry
from turnscope.cli.options import load
from turnscope.store import StoreError, StoreReader

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
