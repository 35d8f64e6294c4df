"""The search for what must not have left a process finds it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from live.leaks import CANARY, forms, found

IDS = [1017, 88, 1999, 4]


@pytest.mark.parametrize(
    "content",
    [
        f"prompt: {CANARY}!".encode(),
        json.dumps({"ids": IDS}).encode(),
        json.dumps(IDS, separators=(",", ":")).encode(),
        b"\0" + b"".join(i.to_bytes(4, "little") for i in IDS),
        b"\0" + b"".join(i.to_bytes(8, "little") for i in IDS),
    ],
)
def test_text_and_token_ids_are_found_in_every_form(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal").write_bytes(content)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(content))
    said = found(tmp_path, [CANARY.encode(), *forms(IDS)])
    assert {sentence.split()[0] for sentence in said} == {"journal", "packed.gz"}


def test_parquet_is_read_and_not_searched_as_it_lies(tmp_path: Path) -> None:
    pq.write_table(pa.table({"session_id": [f"x {CANARY}"] * 50}), tmp_path / "turns.parquet", compression="zstd")
    assert found(tmp_path, [CANARY.encode()])


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"1017, 88, 1999")
    assert found(tmp_path, [CANARY.encode(), *forms(IDS)]) == []
