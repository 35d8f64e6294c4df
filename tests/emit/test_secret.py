"""Which secret digests are made with, and who is asked for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from tests.emit.stubs import Bench, StubJob, StubSender
from turnscope import semconv
from turnscope.emit.emitter import Emitter
from turnscope.emit.secret import Secret
from turnscope.emit.sender import GrpcSender, Outcome
from turnscope.emit.settings import Endpoint, Settings
from turnscope.marks import fingerprint

KEY = "ab" * 32


class Peer:
    """Takes every batch; notes what it was asked and gives ``key`` to whoever asks."""

    def __init__(self, key: str | None) -> None:
        self.key = key
        self.asked: list[str | None] = []
        self.server = grpc.server(ThreadPoolExecutor(1))
        handler = grpc.unary_unary_rpc_method_handler(self._export)
        self.server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(
                    "opentelemetry.proto.collector.logs.v1.LogsService", {"Export": handler}
                ),
            )
        )
        self.endpoint = Endpoint(f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}")
        self.server.start()

    def _export(self, _body: bytes, context: Any) -> bytes:
        asked = dict(context.invocation_metadata()).get(semconv.DIGEST_KEY)
        self.asked.append(asked)
        if self.key is not None and asked is not None:
            context.set_trailing_metadata(((semconv.DIGEST_KEY, self.key),))
        return b""


@pytest.fixture
def peer() -> Iterator[Callable[[str | None], Peer]]:
    peers: list[Peer] = []

    def start(key: str | None) -> Peer:
        peers.append(Peer(key))
        return peers[-1]

    yield start
    for started in peers:
        started.server.stop(0).wait()


def send(peer: Peer, secret: Secret | None, times: int = 1) -> None:
    sender = GrpcSender(peer.endpoint, secret)
    assert [sender.send(b"", 5) for _ in range(times)] == [(Outcome.SENT, "")] * times
    sender.close()


def test_the_sidecar_is_asked_with_the_first_batch_and_told_what_is_known_from_then_on(peer: Any) -> None:
    sidecar, secret = peer(KEY), Secret()
    secret.want()
    send(sidecar, secret, 2)
    assert secret.value == KEY.encode()
    assert sidecar.asked == ["", fingerprint(KEY.encode())]
    assert KEY not in str(sidecar.asked)


def test_a_process_that_makes_no_digests_asks_for_nothing(peer: Any) -> None:
    sidecar, secret = peer(KEY), Secret()
    send(sidecar, secret)
    send(sidecar, None)
    assert sidecar.asked == [None, None]
    assert secret.value is None


def test_with_a_secret_of_the_users_nobody_is_asked(peer: Any) -> None:
    sidecar, secret = peer(KEY), Secret("a secret of the user's")
    secret.want()
    send(sidecar, secret)
    assert sidecar.asked == [None]
    assert secret.value == b"a secret of the user's"


def test_who_takes_batches_and_gives_no_key_is_not_waited_for(peer: Any) -> None:
    secret = Secret()
    secret.want()
    assert not secret.refused
    send(peer(None), secret)
    assert secret.refused
    send(peer(KEY), secret)
    assert not secret.refused


def test_a_sidecar_with_another_key_changes_ours(peer: Any) -> None:
    secret = Secret()
    secret.want()
    send(peer(KEY), secret)
    send(peer("cd" * 32), secret)
    assert secret.value == b"cd" * 32


def test_a_job_that_fails_is_counted_and_takes_nothing_from_the_others() -> None:
    bench, bad, good = Bench(), StubJob(ValueError()), StubJob()
    emitter = Emitter(
        settings=Settings(endpoint=Endpoint("127.0.0.1:1")),
        rings=bench.rings,
        watches=[bench.watch],
        sender=StubSender(),
        log=logging.getLogger("turnscope.test"),
        jobs=[bad, good],
        pause=bench._pause,
    )
    emitter.cycle(1)
    assert good.pauses == [bench._pause]
    assert emitter.errors == 1
