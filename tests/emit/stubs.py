"""A watch and a sender without an engine or a network."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from turnscope.decode import codec
from turnscope.emit.emitter import Emitter
from turnscope.emit.guard import Guard
from turnscope.emit.outbox import Outbox
from turnscope.emit.ring import Rings
from turnscope.emit.sender import Outcome
from turnscope.emit.settings import Endpoint, Settings
from turnscope.model import Emitter as Source
from turnscope.model import Engine, EngineState, Event, Request
from turnscope.semconv import Leg

SECOND = 1_000_000_000


class StubWatch:
    """Builds a request event of each payload, which is its request id."""

    def __init__(self, guard: Guard | None = None) -> None:
        self.guard = guard or Guard("stub hook")
        self.emitter = Source(id="ab" * 8, kind="engine")
        self.engine: Engine | None = Engine(id="p0", generation="01", role="prefill")
        self.wrapped = ["stub"]
        self.running: list[str] = []
        self.idle: list[tuple[str, str]] = []

    def state(self, body: EngineState) -> EngineState:
        return body

    def open_requests(self) -> list[str]:
        return self.running

    def idle_requests(self, pause: Callable[[], None]) -> list[tuple[str, str]]:
        pause()
        return self.idle

    def forget(self) -> None:
        self.running = []

    def request(self, payload: Any) -> Request:
        if payload == "unbuildable":
            raise KeyError(payload)
        return Request(
            request_id=payload, leg=Leg.WHOLE, input_tokens=1, output_tokens=1, finish_reason="stop", added_mono_ns=1
        )


class StubJob:
    """Does nothing, or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.pressing = False
        self.pauses: list[Callable[[], None]] = []
        """What it was given, each time it was asked to work."""
        self._error = error

    def work(self, pause: Callable[[], None]) -> None:
        self.pauses.append(pause)
        if self._error is not None:
            raise self._error


class StubSender:
    """Takes what ``outcome`` says."""

    def __init__(self, outcome: Outcome = Outcome.SENT) -> None:
        self.outcome = outcome
        self.why = "UNAVAILABLE: nobody there"
        self.bodies: list[bytes] = []
        self.tries = 0
        self.closed = False

    def send(self, body: bytes, timeout_s: float) -> tuple[Outcome, str]:
        assert timeout_s > 0
        self.tries += 1
        if self.outcome is Outcome.SENT:
            self.bodies.append(body)
        return self.outcome, "" if self.outcome is Outcome.SENT else self.why

    def close(self) -> None:
        self.closed = True

    def events(self) -> list[Event]:
        """All events that were taken."""
        return [event for body in self.bodies for event in events_of(body)]


def events_of(body: bytes) -> list[Event]:
    """The events of one serialised batch; AssertionError when one cannot be read."""
    decoded = codec.decode(codec.ExportLogsServiceRequest.FromString(body))  # type: ignore[attr-defined]
    assert decoded.rejected == []
    return decoded.events


class Bench:
    """An emitter and everything around it, stepped by hand."""

    def __init__(
        self, *, off_file: str | None = None, outbox: Outbox | None = None, heartbeat_s: float = 10, **capacity: int
    ) -> None:
        self.rings = Rings({"engine": 8, "request": 1000, "hold": 10} | capacity)
        self.watch = StubWatch()
        self.job = StubJob()
        self.sender = StubSender()
        self.pauses = 0
        self.now = 0
        self.emitter = Emitter(
            settings=Settings(endpoint=Endpoint("127.0.0.1:1"), off_file=off_file, heartbeat_s=heartbeat_s),
            rings=self.rings,
            watches=[self.watch],
            jobs=[self.job],
            sender=self.sender,
            log=logging.getLogger("turnscope.test"),
            pause=self._pause,
            outbox=outbox,
        )

    def _pause(self) -> None:
        self.pauses += 1

    def push(self, *names: str, kind: str = "request") -> None:
        push = self.rings[kind].pusher(self.watch.request)
        for name in names:
            push(name)

    def cycle(self, seconds: float = 1) -> None:
        """One round, ``seconds`` after the last."""
        self.now += int(seconds * SECOND)
        self.emitter.cycle(self.now)

    def given(self) -> int:
        """Numbers given so far; uses one up."""
        return next(self.rings.numbers) - 1
