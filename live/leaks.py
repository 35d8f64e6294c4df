"""Whether anything of what clients wrote has left the processes that serve it: canaries, and where they turn up."""

from __future__ import annotations

import gzip
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import httpx
import pyarrow.parquet as pq

from live.engines import MODEL_NAME, Engine

CANARY = "Zqxkanarienvogel7431"
"""Planted in system prompts, user messages, tools, tool results and a header: no word that anybody else writes."""
HEADER = {"X-Client-Note": f"{CANARY} in a header"}


def needles(engine: Engine) -> list[bytes]:
    """The canary as text, and its token ids in the forms in which ids are written."""
    answer = httpx.post(f"{engine.url}/tokenize", json={"model": MODEL_NAME, "prompt": f" {CANARY}"}, timeout=60)
    ids: list[int] = answer.raise_for_status().json()["tokens"][1:-1]
    return [CANARY.encode(), *forms(ids)]


def forms(ids: Sequence[int]) -> Iterator[bytes]:
    """Token ids as text, as JSON, and packed."""
    for separator in (",", ", ", " ", "\n"):
        yield separator.join(map(str, ids)).encode()
    for width in "HIQ":
        yield array(width, ids).tobytes()


def found(folder: Path, wanted: Iterable[bytes]) -> list[str]:
    """One sentence for each file under ``folder`` in which one of them stands; Parquet and gzip are unpacked."""
    wanted = list(wanted)
    out = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        content = _content(path)
        out += [f"{path.relative_to(folder)} contains {needle[:40]!r}" for needle in wanted if needle in content]
    return out


def _content(path: Path) -> bytes:
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return b"\n".join(repr(row).encode() for row in table.to_pylist())
    content = path.read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
