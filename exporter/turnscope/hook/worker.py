"""A worker's side of NIXL: which request each transfer serves, and when holds and leases end on this rank.

Engine threads run everything down to the line; each wrapper does next to nothing while nothing happens.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import Any, Final

from turnscope.hook.guard import Guard
from turnscope.hook.ring import Rings
from turnscope.hook.values import count, text
from turnscope.model import Emitter, Engine, Hold, Transfer
from turnscope.semconv import Direction, HoldKind, Role, TransferState

_LIMIT: Final = 4096
"""Requests remembered while they connect or while their readers come; the engine itself rarely knows as many."""


class Reading:
    """A request whose blocks are being read (or, in push mode, written) right now on one thread."""

    __slots__ = (
        "connected", "expired_before", "notices", "remote_engine", "remote_request", "request_id", "returning",
        "transfers",
    )  # fmt: skip

    def __init__(self, request_id: str, remote: Any) -> None:
        self.request_id = request_id
        self.remote_engine = remote.engine_id
        self.remote_request = remote.request_id
        self.returning = getattr(remote, "blocks_expiry_time", None) is not None
        """The handle carries an expiry time: only D's do."""
        self.transfers = 0
        self.notices = 0
        self.connected = True
        self.expired_before = 0


class WorkerWatch:
    """Watches one ``connector_worker``. ``attach`` puts the wrappers on its instance."""

    def __init__(self, *, rings: Rings, guard: Guard, emitter: Emitter, engine: Engine, worker: Any) -> None:
        self.guard = guard
        self.emitter = emitter
        self.engine = engine
        self.wrapped: list[str] = []
        self._worker = worker
        self._push_mode = hasattr(worker, "_sending_transfers")
        self._readers_named = hasattr(worker, "expected_consumer_notifications_by_req")
        self._reading: Reading | None = None
        self._transfers: dict[Any, tuple[Reading | None, int]] = {}
        self._connecting: dict[str, Reading] = {}
        self._notices: dict[str, list[int]] = {}
        self._pushed: set[str] = set()
        self._kinds: dict[str, HoldKind] = {}
        self._push_transfer = rings["transfer"].push
        self._push_hold = rings["hold"].push

    def read_started(self, request_id: str, meta: Any) -> None:
        """``_read_blocks_for_req`` begins; the transfers made until it ends are this request's."""
        self._reading = None
        reading = Reading(request_id, meta.remote)
        reading.connected = reading.remote_engine in self._worker._remote_agents
        reading.expired_before = self._expired_so_far()
        self._reading = reading

    def read_ended(self) -> None:
        """It has ended: with transfers, with a notice alone, declined, or waiting for a handshake."""
        reading, self._reading = self._reading, None
        if reading is None:
            return
        if self._connecting:
            self._connecting.pop(reading.request_id, None)
        if reading.transfers:
            return
        if self._expired_so_far() > reading.expired_before:
            self._push_transfer(self, self._ended, (reading, TransferState.DECLINED, None, None))
        elif reading.notices:
            self._push_transfer(self, self._ended, (reading, TransferState.NOTICE_ONLY, None, None))
        elif reading.remote_engine in getattr(self._worker, "_invalid_remote_engines", ()):
            self._push_transfer(self, self._ended, (reading, TransferState.FAILED, None, None))
        elif not reading.connected and len(self._connecting) < _LIMIT:
            self._connecting[reading.request_id] = reading

    def _expired_so_far(self) -> int:
        """vLLM's own list grows by one when it declines a read. Only looked at: it is copied and pickled."""
        return len(self._worker.xfer_stats.data.get("num_kv_expired_reqs", ()))

    def transfer_made(self, handle: Any) -> None:
        """``make_prepped_xfer`` returned. Only the number is kept: dropping the object would abort the transfer."""
        reading = self._reading
        if reading is not None:
            reading.transfers += 1
        self._transfers[getattr(handle, "_handle", handle)] = (reading, monotonic_ns())

    def transfer_refused(self) -> None:
        """``make_prepped_xfer`` raised: there is no handle that could be released later."""
        reading = self._reading
        if reading is not None:
            reading.transfers += 1
        self._push_transfer(self, self._ended, (reading, TransferState.FAILED, None, None))

    def transfer_done(self, number: Any, telemetry: Any) -> None:
        """``get_xfer_telemetry`` returned: vLLM asks once, when a transfer is complete."""
        made = self._transfers.pop(number, None)
        if made is not None:
            reading, started_ns = made
            if self._push_mode and reading is not None:
                self._pushed.add(reading.request_id)
            self._push_transfer(self, self._ended, (reading, TransferState.DONE, started_ns, telemetry))

    def transfer_released(self, number: Any) -> None:
        """``release_xfer_handle`` returned; a transfer that was not complete before has failed."""
        made = self._transfers.pop(number, None)
        if made is not None:
            self._push_transfer(self, self._ended, (made[0], TransferState.FAILED, made[1], None))

    def notice_sent(self) -> None:
        """``send_notif`` returned. Heartbeats (``HB:``) are sent outside of any read."""
        if self._reading is not None:
            self._reading.notices += 1

    def notices_came(self, notices: dict[Any, list[bytes]]) -> None:
        """``get_new_notifs`` returned something: readers of our blocks say that they are done."""
        worker = self._worker
        for messages in notices.values():
            for message in messages:
                if message[:3] == b"HB:":
                    continue
                name, _, number = message.decode().rpartition(":")
                if name in worker._reqs_to_send or name in worker._reqs_to_process:
                    seen = self._notices.get(name)
                    if seen is None:
                        if len(self._notices) >= _LIMIT:
                            del self._notices[next(iter(self._notices))]
                        seen = self._notices[name] = [0, 0]
                    seen[0] += 1
                    seen[1] = self._readers(int(number))
                else:
                    self._push_hold(self, self._hold, (name, "late_notice", None, None))

    def results(self, results: Any) -> None:
        """``get_transfer_results`` or ``get_finished`` returned: what was sent, and what was received or failed."""
        if type(results) is tuple:
            sent, received = results
        else:
            sent, received = results.finished_sending, results.finished_recving
        if sent and not self._silent_rank():
            for name in sent:
                seen, expected = self._notices.pop(name, (0, None))
                complete = expected is not None and seen >= expected
                if self._push_mode:
                    complete = name in self._pushed
                    self._pushed.discard(name)
                self._push_hold(self, self._hold, (name, "released" if complete else "expired", seen, expected))
        if received and self._connecting:
            for name in received:
                reading = self._connecting.pop(name, None)
                if reading is not None:
                    self._push_transfer(self, self._ended, (reading, TransferState.HANDSHAKE_FAILED, None, None))

    def holds_began(self, metadata: Any) -> None:
        """``start_load_kv`` got new deadlines. Where P and D are one engine only they tell a hold from a lease."""
        hold_ns, lease_ns = self.engine.hold_ttl_ns, self.engine.lease_ns
        if hold_ns is None or lease_ns is None:
            return
        now = metadata.scheduler_clock
        for name, deadline in metadata.reqs_to_send.items():
            left_ns = (deadline - now) * 1e9
            longer = abs(left_ns - hold_ns) < abs(left_ns - lease_ns)
            if len(self._kinds) >= _LIMIT:
                del self._kinds[next(iter(self._kinds))]
            self._kinds[name] = HoldKind.HOLD if longer else HoldKind.LEASE

    def _readers(self, number: int) -> int:
        """Engines that do not name the readers send the reader's TP size instead."""
        if self._readers_named:
            return number
        return max(1, number // max(1, getattr(self._worker, "world_size", 1)))

    def _silent_rank(self) -> bool:
        """Ranks that hold copies of the prefill context are reported as sent without being read."""
        worker = self._worker
        return bool(getattr(worker, "pcp_rank", 0) > 0 and not getattr(worker, "pcp_dcp_sharded", False))

    # --- background thread ------------------------------------------------------------------------------
    def open_requests(self) -> list[str]:
        return []

    def forget(self) -> None:
        self._connecting.clear()
        self._notices.clear()
        self._kinds.clear()

    def _ended(self, payload: tuple[Any, ...]) -> Transfer:
        reading, state, started_ns, telemetry = payload
        duration_us = count(getattr(telemetry, "xferDuration", None))
        post_us = count(getattr(telemetry, "postDuration", None))
        return Transfer(
            request_id="" if reading is None else reading.request_id,
            direction=self._direction(reading),
            state=state,
            remote_engine_id=None if reading is None else text(reading.remote_engine),
            # A writer knows the turn by its own request; only a reader's turn is named by the remote one.
            remote_request_id=None if reading is None or self._push_mode else text(reading.remote_request),
            bytes=count(getattr(telemetry, "totalBytes", None)),
            descriptors=count(getattr(telemetry, "descCount", None)),
            duration_ns=None if duration_us is None else duration_us * 1000,
            post_ns=None if post_us is None else post_us * 1000,
            started_mono_ns=started_ns,
        )

    def _direction(self, reading: Reading | None) -> Direction:
        if self._push_mode or self.engine.role == Role.DECODE or not self.engine.bidirectional:
            return Direction.HANDOFF
        if self.engine.role == Role.PREFILL or (reading is not None and reading.returning):
            return Direction.REVERSE_FETCH
        return Direction.UNKNOWN

    def _hold(self, payload: tuple[Any, ...]) -> Hold:
        request_id, phase, seen, expected = payload
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
