"""One NIXL worker (one rank): its transfers and the ends of its holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnscope.emit.guard import Guard
from turnscope.emit.ring import Rings
from turnscope.hook.holds import readers_expected, watch_completions, watch_kinds, watch_notices
from turnscope.hook.reads import watch_reads
from turnscope.hook.values import count, text
from turnscope.model import Emitter, Engine, EngineState, Hold, Transfer
from turnscope.semconv import Direction, HoldKind, Role, TransferState


class WorkerWatch:
    """Watches one ``connector_worker``."""

    def __init__(self, *, rings: Rings, guard: Guard, emitter: Emitter, engine: Engine) -> None:
        self.guard = guard
        self.emitter = emitter
        self.engine = engine
        self.wrapped = ["connector_worker", "nixl_wrapper"]
        self._worker: Any = None
        self._push_mode = False
        self._silent_rank = False
        self._connecting: dict[str, tuple[Any, ...]] = {}
        self._notices: dict[str, list[Any]] = {}
        self._kinds: dict[str, HoldKind] = {}
        self._written: set[str] = set()
        self._push_transfer = rings["transfer"].pusher(self.transfer)
        self._push_hold = rings["hold"].pusher(self.hold)

    # --- engine thread --------------------------------------------------------------------------------
    def attach(self, worker: Any) -> None:
        """Put the wrappers on the instances; what this engine has not is left out."""
        self._worker = worker
        self._push_mode = hasattr(worker, "_sending_transfers")
        # Ranks that hold copies of the prefill context are reported as sent without being read.
        self._silent_rank = getattr(worker, "pcp_rank", 0) > 0 and not getattr(worker, "pcp_dcp_sharded", False)
        watch_reads(
            worker,
            self.guard,
            self._written_or_read if self._push_mode else self._push_transfer,
            self._connecting,
            two_way=self.engine.role == Role.BOTH,
        )
        if not self._push_mode:
            watch_notices(worker, self.guard, self._push_hold, self._notices)
        hold_ns, lease_ns = self.engine.hold_ttl_ns, self.engine.lease_ns
        if self.engine.role == Role.BOTH and self.engine.bidirectional and hold_ns and lease_ns:
            watch_kinds(worker, self.guard, hold_ns, lease_ns, self._kinds)
        watch_completions(worker, self.guard, self._done)

    def _written_or_read(self, payload: tuple[Any, ...]) -> None:
        """In push mode nobody sends us notices: a lease ends well when its writes are done."""
        if payload[1] is TransferState.DONE:
            self._written.add(payload[0][0])
        self._push_transfer(payload)

    def _done(self, sent: Any, received: Any) -> None:
        if sent and not self._silent_rank:
            for name in sent:
                self._push_hold((name, "done", self._notices.pop(name, None)))
        if self._connecting:
            for name in received or ():
                serves = self._connecting.pop(name, None)
                if serves is not None:
                    self._push_transfer((serves, TransferState.HANDSHAKE_FAILED, None, None))

    # --- background thread ------------------------------------------------------------------------------
    def open_requests(self) -> list[str]:
        return []

    def idle_requests(self, pause: Callable[[], None]) -> list[tuple[str, str]]:  # noqa: ARG002
        return []

    def forget(self) -> None:
        self._connecting.clear()
        self._notices.clear()
        self._kinds.clear()
        self._written.clear()

    def state(self, body: EngineState) -> EngineState:
        return body

    def transfer(self, payload: tuple[Any, ...]) -> Transfer:
        """The ``transfer`` event of a finished, failed, declined or unnecessary read."""
        (request_id, remote_engine, remote_request, returning), state, started_ns, telemetry = payload
        duration_us = count(getattr(telemetry, "xferDuration", None))
        post_us = count(getattr(telemetry, "postDuration", None))
        return Transfer(
            request_id=request_id or "",
            direction=self._direction(returning),
            state=state,
            remote_engine_id=text(remote_engine),
            # A writer knows the turn by its own request; only a reader's turn is named by the remote one.
            remote_request_id=None if self._push_mode else text(remote_request),
            bytes=count(getattr(telemetry, "totalBytes", None)),
            descriptors=count(getattr(telemetry, "descCount", None)),
            duration_ns=None if duration_us is None else duration_us * 1000,
            post_ns=None if post_us is None else post_us * 1000,
            started_mono_ns=started_ns,
        )

    def _direction(self, returning: bool) -> Direction:
        if self._push_mode or self.engine.role == Role.DECODE or not self.engine.bidirectional:
            return Direction.HANDOFF
        if self.engine.role == Role.PREFILL or returning:
            return Direction.REVERSE_FETCH
        return Direction.UNKNOWN

    def hold(self, payload: tuple[Any, ...]) -> Hold:
        """The ``hold`` event of one that ended on this rank, or was read after its end."""
        request_id, phase, notices = payload
        seen = expected = None
        if phase == "done":
            seen = 0
            if notices is not None:
                seen, expected = notices[0], readers_expected(self._worker, notices[1])
            complete = request_id in self._written if self._push_mode else expected is not None and seen >= expected
            self._written.discard(request_id)
            phase = "released" if complete else "expired"
        return Hold(
            request_id=request_id,
            kind=self._kinds.pop(request_id, self._usual_kind()),
            phase=phase,
            readers_expected=expected,
            readers_seen=seen,
        )

    def _usual_kind(self) -> HoldKind:
        if self.engine.role == Role.PREFILL or not self.engine.bidirectional:
            return HoldKind.LEASE
        return HoldKind.HOLD
