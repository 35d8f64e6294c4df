"""What the live pair's hooks send reaches every sidecar, and none twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub

from live.tee import Copy, prefill_elsewhere, running_tee
from tests.builders import Pair
from turnscope import semconv
from turnscope.decode import codec
from turnscope.model import Event
from turnscope.receivers.errors import Unavailable
from turnscope.receivers.intake import LogsIntake, SpansIntake
from turnscope.receivers.otlp_grpc import OtlpGrpc

LIMIT = 2**20
EVENTS = Pair().turn("1")


@dataclass
class Taker:
    """A receiver."""

    key: str
    accepted: list[Event] = field(default_factory=list)
    trouble: Exception | None = None

    def __post_init__(self) -> None:
        logs = LogsIntake(self._accept, lambda *_: None, max_bytes=LIMIT)
        spans = SpansIntake(lambda _: None, lambda *_: None, max_bytes=LIMIT)
        self.server = OtlpGrpc(logs, spans, "127.0.0.1:0", max_bytes=LIMIT)
        self.server.give_out(self.key)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def _accept(self, events: list[Event]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.accepted += events


@pytest.fixture
def takers() -> Iterator[tuple[Taker, Taker]]:
    """The main one and another."""
    both = Taker("k" * 32), Taker("o" * 32)
    for taker in both:
        taker.server.start()
    yield both
    for taker in both:
        taker.server.stop(0)


def send(endpoint: str) -> dict[str, str | bytes]:
    """What the answer brings along."""
    with grpc.insecure_channel(endpoint.removeprefix("http://")) as channel:
        export = LogsServiceStub(channel).Export
        _, call = export.with_call(
            codec.encode(EVENTS, observed_ns=0), timeout=10, metadata=((semconv.DIGEST_KEY, ""),)
        )
        return dict(call.trailing_metadata())


def test_each_gets_every_event_and_the_main_one_alone_gives_its_key(takers: tuple[Taker, Taker]) -> None:
    main, other = takers
    with running_tee(main.endpoint, [Copy(other.endpoint)]) as endpoint:
        assert send(endpoint)[semconv.DIGEST_KEY] == main.key
    assert main.accepted == EVENTS
    assert other.accepted == EVENTS


def test_prefills_processes_and_no_others_can_be_put_on_another_host(takers: tuple[Taker, Taker]) -> None:
    main, other = takers
    with running_tee(main.endpoint, [Copy(other.endpoint, prefill_elsewhere("far"))]) as endpoint:
        send(endpoint)
    assert main.accepted == EVENTS
    hosts = {(e.engine.role if e.engine else "proxy", e.emitter.host) for e in other.accepted}
    before = {(e.engine.role if e.engine else "proxy", e.emitter.host) for e in EVENTS}
    assert hosts == {(role, "far" if role == "prefill" else host) for role, host in before}
    assert [e.body for e in other.accepted] == [e.body for e in EVENTS]


def test_what_one_of_them_does_not_take_is_the_senders_to_send_again(takers: tuple[Taker, Taker]) -> None:
    main, other = takers
    other.trouble = Unavailable("full")
    with running_tee(main.endpoint, [Copy(other.endpoint)]) as endpoint:
        with pytest.raises(grpc.RpcError) as error:
            send(endpoint)
        assert error.value.code() is grpc.StatusCode.UNAVAILABLE
        assert main.accepted == []
        other.trouble = None
        send(endpoint)
    assert main.accepted == other.accepted == EVENTS
