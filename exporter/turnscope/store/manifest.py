"""The manifest: which files make up one writer's part of the store. What it does not list does not exist."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from turnscope.store.errors import StoreBroken
from turnscope.store.schema import TABLES

FOLDER: Final = "manifests"
VERSION: Final = 1
_WRITER: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


class File(msgspec.Struct, frozen=True, kw_only=True):
    """One Parquet file. ``level``: 0 as flushed, 1 after the hourly compaction, 2 after the daily one."""

    path: str
    table: str
    date: str
    rows: int
    bytes: int
    level: int
    created_ns: int


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was replaced; deleted when its grace is over, so that readers at work can finish."""

    path: str
    removed_ns: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One writer's manifest, replaced as a whole."""

    version: int = VERSION
    writer: str
    generation: int = 0
    """Goes up by one with every replacement."""
    written_ns: int = 0
    compacted_hour: int = 0
    """The last hour, in hours since 1970, in which flushed files were compacted."""
    compacted_day: int = 0
    files: tuple[File, ...] = ()
    removed: tuple[Removed, ...] = ()


def manifest_path(writer: str) -> str:
    """Where a writer's manifest lies, relative to the store."""
    return f"{FOLDER}/{writer}.json"


def valid_writer(writer: str) -> bool:
    """Whether ``writer`` can be part of a file name: letters, digits and ``_ . -``, at most 64 of them."""
    return _WRITER.match(writer) is not None and not writer.startswith(".")


def data_path(table: str, date: str, generation: int, number: int, writer: str) -> str:
    """A new file's path, relative to the store.

    File names of one writer sort in the order of writing, whatever the clock does, and are never used again: every
    opening raises the generation, and ``number`` counts the files of one process.
    """
    return f"{table}/date={date}/{generation:012d}-{number:08d}-{writer}.parquet"


def is_from(path: str, writer: str) -> bool:
    """Whether the name of ``path`` says that ``writer`` made it."""
    return re.search(rf"/\d{{12,}}-\d{{8,}}-{re.escape(writer)}\.parquet\Z", path) is not None


def encode(manifest: Manifest) -> bytes:
    """As JSON that a person can read."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def decode(data: bytes, where: str) -> Manifest:
    """Raises StoreBroken, naming ``where``, if ``data`` is no manifest this version can read."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreBroken(f"the manifest {where} cannot be read ({error}): restore it from a backup") from None
    if manifest.version != VERSION:
        raise StoreBroken(
            f"the manifest {where} has format {manifest.version}, this turnscope reads {VERSION}: use a newer one"
        )
    for file in manifest.files:
        if file.table not in TABLES or not _DATE.match(file.date) or not _inside(file.path):
            raise StoreBroken(f"the manifest {where} lists a file that cannot be part of a store: {file.path!r}")
    return manifest


def _inside(path: str) -> bool:
    return re.fullmatch(rf"({'|'.join(TABLES)})/date=[\d-]{{10}}/[A-Za-z0-9_.-]+\.parquet", path) is not None
