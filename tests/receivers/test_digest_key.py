"""The sidecar's key for digests: where it is kept, and who gets it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub

from tests.builders import Pair
from turnscope import semconv
from turnscope.decode import codec
from turnscope.marks import fingerprint
from turnscope.receivers.digest_key import NAME, BadKey, load_or_make
from turnscope.receivers.intake import LogsIntake, SpansIntake
from turnscope.receivers.otlp_grpc import OtlpGrpc

KEY = "ab" * 32
LIMIT = 1 << 20


def test_a_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    key = load_or_make(folder)
    assert len(bytes.fromhex(key)) == 32
    assert load_or_make(folder) == key
    assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == [NAME]
    assert load_or_make(tmp_path / "other") != key


def test_what_a_crash_left_half_written_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "digest.new").write_text("ab")
    assert load_or_make(tmp_path) == load_or_make(tmp_path)


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 64])
def test_a_file_without_a_key_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(BadKey, match=r"digest\.key holds no key: remove it"):
        load_or_make(tmp_path)
    assert (tmp_path / NAME).read_bytes() == content


def told(key: str | None, *metadata: tuple[str, str], body: Any = None) -> str | None:
    """What the server tells of its key to one batch with this metadata."""
    intake = LogsIntake(lambda _: None, lambda *_: None, max_bytes=LIMIT)
    spans = SpansIntake(lambda _: None, lambda *_: None, max_bytes=LIMIT)
    server = OtlpGrpc(intake, spans, "127.0.0.1:0", max_bytes=LIMIT)
    if key is not None:
        server.give_out(key)
    server.start()
    request = codec.encode(Pair().turn("1"), observed_ns=1) if body is None else body
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        _, call = LogsServiceStub(channel).Export.with_call(request, timeout=10, metadata=metadata)
        answer: str | None = dict(call.trailing_metadata() or ()).get(semconv.DIGEST_KEY)
    server.stop(0)
    return answer


def test_a_hook_that_asks_gets_the_key_with_its_answer() -> None:
    assert told(KEY, (semconv.DIGEST_KEY, "")) == KEY


def test_a_hook_with_another_key_gets_ours_and_one_with_ours_gets_none() -> None:
    assert told(KEY, (semconv.DIGEST_KEY, fingerprint(b"cd" * 32))) == KEY
    assert told(KEY, (semconv.DIGEST_KEY, fingerprint(KEY.encode()))) is None


def test_who_does_not_ask_is_told_nothing() -> None:
    assert told(KEY) is None


def test_a_server_without_a_key_gives_none() -> None:
    assert told(None, (semconv.DIGEST_KEY, "")) is None
