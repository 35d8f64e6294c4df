"""The one background thread of a process: empties the rings, encodes, sends, and says that the process lives."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from turnscope.emit.encoding import Encoder
from turnscope.emit.guard import Guard
from turnscope.emit.outbox import Outbox
from turnscope.emit.pacing import give_way
from turnscope.emit.ring import Rings
from turnscope.emit.sender import Outcome, Sender
from turnscope.emit.settings import Settings
from turnscope.emit.watch import Job, Watch
from turnscope.model import EngineState, Event, Heartbeat, shown

BATCH: Final = 64
"""Events, and fewer where they are long."""
ROUND_NS: Final = 1_000_000_000
"""Rounds are so far apart, unless much waits or a heartbeat is due: a batch costs as much to send as thirty events to
make, and the sidecar waits longer than this for a turn's other events."""
TAKE: Final = 4
"""Entries of each ring taken in one go."""
OPEN_LIMIT: Final = 1024
IDLE_LIMIT: Final = 256
"""Of the oldest. A heartbeat is serialised in one call, which shall stay well below a tenth of a millisecond."""
SEND_TIMEOUT_S: Final = 5.0
CLOSE_TIMEOUT_S: Final = 1.0
MAX_BACKOFF_NS: Final = 5_000_000_000


class Emitter:
    """``cycle()`` does one round; the runtime calls it from its thread. Nothing here is called by serving threads."""

    def __init__(
        self,
        *,
        settings: Settings,
        rings: Rings,
        watches: Sequence[Watch],
        sender: Sender,
        log: logging.Logger,
        jobs: Sequence[Job] = (),
        pause: Callable[[], None] = give_way,
        outbox: Outbox | None = None,
    ) -> None:
        self._settings = settings
        self._rings = rings
        self._watches = watches
        self._jobs = jobs
        self._sender = sender
        self._log = log
        self._pause = pause
        self._encoder = Encoder(pause)
        self._events: list[Event] = []
        """Made in this round, for its next batch."""
        self._round_ns = -ROUND_NS
        self.outbox = outbox or Outbox()
        self.sent = 0
        self._unbuilt = 0
        self._errors = 0
        self._said_broken: set[Guard] = set()
        self._said_unseen = False
        self._said_refused: set[str] = set()
        self._off = False
        self._heartbeat_ns = 0
        self._retry_ns = 0
        self._backoff_ns = 0
        self._unreachable = False

    @property
    def dropped(self) -> int:
        """Events numbered and lost so far in this process."""
        return self._rings.dropped + self.outbox.dropped + self._encoder.failed + self._unbuilt

    @property
    def errors(self) -> int:
        """Exceptions caught so far: in hook bodies, and here."""
        return self._errors + sum(guard.errors for guard in self._guards())

    def cycle(self, now_ns: int) -> None:
        """One round at monotonic ``now_ns``, if it is time for one. Never raises."""
        try:
            beats = now_ns - self._heartbeat_ns >= self._settings.heartbeat_s * 1e9
            if not (beats or now_ns - self._round_ns >= ROUND_NS or self._much_waits):
                return
            self._round_ns = now_ns
            self._follow_off_file()
            self._say_broken()
            self._gather()
            self._work()
            self._gather()
            if beats:
                self._heartbeat_ns = now_ns
                if not self._off:
                    self._beat()
            self._encode()
            if now_ns >= self._retry_ns:
                self._send(now_ns, SEND_TIMEOUT_S)
        except Exception as error:
            self._count(error)

    @property
    def _much_waits(self) -> bool:
        return self._rings.queued >= BATCH or any(job.pressing for job in self._jobs)

    def close(self, deadline_ns: int) -> None:
        """Say that the process goes away and send what is left, until monotonic ``deadline_ns``. Never raises."""
        with contextlib.suppress(Exception):
            self._state("stopping", None)
            self._gather()
            self._work()
            self._gather()
            if not self._off:
                self._beat()
            self._encode()
            known_away = self._unreachable
            while (left := deadline_ns - time.monotonic_ns()) > 0:
                if self._send(time.monotonic_ns(), min(CLOSE_TIMEOUT_S, left / 1e9)) or known_away:
                    break
                time.sleep(0.05)
        self._sender.close()

    def _count(self, error: Exception) -> None:
        self._errors += 1
        if self._errors in (1, 100, 10_000):
            self._log.warning("turnscope: the background thread met %r (error %d); it goes on", error, self._errors)

    # --- what the process says of itself ------------------------------------------------------------
    def _guards(self) -> list[Guard]:
        return [watch.guard for watch in list(self._watches)]

    def _state(self, state: str, message: str | None, only: Guard | None = None) -> None:
        for watch in list(self._watches):
            if only is None or watch.guard is only:
                body = EngineState(state=state, wrapped=list(watch.wrapped), message=message)
                self._rings["engine"].pusher(watch.state)(body)

    def _follow_off_file(self) -> None:
        off = self._off_file_is_there()
        if off != self._off:
            self._log.warning(
                "turnscope: switched %s at run time by %s", "off" if off else "on", self._settings.off_file
            )
            if off:
                self._state("switched_off", "TURNSCOPE_OFF_FILE exists")
            self._off = off
            if not off:
                self._state("started", "TURNSCOPE_OFF_FILE is gone")
        for watch in list(self._watches):
            watch.guard.allow(not off)
            if off:
                watch.forget()

    def _off_file_is_there(self) -> bool:
        """One that cannot be looked for is not; that is said once."""
        if self._settings.off_file is None:
            return False
        try:
            Path(self._settings.off_file).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            if not self._said_unseen:
                self._said_unseen = True
                self._log.warning(
                    "turnscope: TURNSCOPE_OFF_FILE=%s cannot be looked for (%s) and switches nothing off: name one in "
                    "a folder that this process may read", shown(self._settings.off_file), error.strerror,
                )  # fmt: skip
            return False
        return True

    def _say_broken(self) -> None:
        for watch in list(self._watches):
            guard = watch.guard
            if guard.broken and guard not in self._said_broken:
                self._said_broken.add(guard)
                watch.forget()
                text = f"{guard.name}: switched off after {guard.errors} errors, the last a {guard.last_error}"
                self._log.warning("turnscope: %s; what it watched is not affected", text)
                self._state("switched_off", text, guard)

    def _beat(self) -> None:
        watch = next((w for w in self._watches if w.emitter.kind == "engine"), self._watches[0])
        watches = list(self._watches)
        self._pause()
        open_requests = list(chain.from_iterable(w.open_requests() for w in watches))
        self._pause()
        idle = list(islice(chain.from_iterable(w.idle_requests(self._pause) for w in watches), IDLE_LIMIT))
        self._pause()
        listed, more = open_requests[:OPEN_LIMIT], max(0, len(open_requests) - OPEN_LIMIT)
        del open_requests
        self._pause()
        seq = next(self._rings.numbers)
        body = Heartbeat(
            last_seq=seq,
            dropped=self.dropped,
            errors=self.errors,
            open_requests=listed,
            open_more=more,
            idle_requests=[request_id for request_id, _ in idle],
            idle_turns=[turn_id for _, turn_id in idle],
        )
        self._pause()
        now_ns = time.monotonic_ns()
        self._events.append(_event(watch, seq, now_ns, time.time_ns() - now_ns, body))

    # --- rings to outbox ------------------------------------------------------------------------------
    def _work(self) -> None:
        """Let each job do what waits for it; one that fails takes nothing from the others."""
        for job in list(self._jobs):
            try:
                job.work(self._pause)
            except Exception as error:
                self._count(error)

    def _gather(self) -> None:
        """Empty the rings of what was in them at the beginning."""
        offset = time.time_ns() - time.monotonic_ns()
        left = self._rings.queued
        while left > 0 and (entries := self._rings.take(TAKE)):
            left -= len(entries)
            self._pause()
            for entry in entries:
                watch: Watch = entry.build.__self__  # type: ignore[attr-defined]
                try:
                    body = entry.build(entry.payload)
                except Exception as error:
                    # Lost, but nothing that could hurt serving: what a client sent must not switch a hook off.
                    self._unbuilt += 1
                    self._count(error)
                    continue
                self._events.append(_event(watch, entry.seq, entry.mono_ns, offset, body))
                self._pause()
                if len(self._events) == BATCH:
                    self._encode()

    def _encode(self) -> None:
        """Make a batch of the events that were made."""
        events, self._events = self._events, []
        for batch in self._encoder.encode(events, observed_ns=time.time_ns()):
            self.outbox.add(batch)
            self._pause()
        while events:  # freeing all at once takes as long as making some
            del events[-8:]
            self._pause()

    # --- outbox to sidecar ------------------------------------------------------------------------------
    def _send(self, now_ns: int, timeout_s: float) -> bool:
        """Send until nothing is left (True) or the sidecar does not take it (False)."""
        while (batch := self.outbox.first()) is not None:
            outcome, why = self._sender.send(batch.body, timeout_s)
            if outcome is Outcome.LATER:
                self._backoff_ns = min(MAX_BACKOFF_NS, max(500_000_000, 2 * self._backoff_ns))
                self._retry_ns = now_ns + self._backoff_ns
                if not self._unreachable:
                    self._unreachable = True
                    self._log.warning(
                        "turnscope: %s does not take events (%s); they are kept, at most %d MiB, and sent again",
                        self._settings.endpoint, why, self.outbox.max_bytes >> 20,
                    )  # fmt: skip
                return False
            if self._unreachable:
                self._unreachable = False
                self._log.warning("turnscope: %s takes events again", self._settings.endpoint)
            self._backoff_ns = 0
            if outcome is Outcome.SENT:
                self.outbox.sent_first()
                self.sent += batch.events
            else:
                self.outbox.drop_first()
                self._say_refused(batch.events, why)
        return True

    def _say_refused(self, events: int, why: str) -> None:
        """Once for each status: what is wrong with an endpoint is wrong with every batch."""
        status = why.partition(":")[0]
        if status not in self._said_refused:
            self._said_refused.add(status)
            self._log.warning(
                "turnscope: %s refused %d events (%s); they are lost, and others like them are counted in silence",
                self._settings.endpoint, events, why,
            )  # fmt: skip


def _event(watch: Watch, seq: int, mono_ns: int, offset: int, body: Any) -> Event:
    return Event(
        emitter=watch.emitter, engine=watch.engine, seq=seq, wall_ns=mono_ns + offset, mono_ns=mono_ns, body=body
    )
