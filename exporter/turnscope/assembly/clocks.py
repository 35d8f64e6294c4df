"""Clocks of several hosts: what each shows when the others show something, worked out from what must enclose what.

A proxy sends its request to an engine before the engine has it, and has the answer after the engine was done: so the
engine's clock, less the proxy's, lies between (engine's end - proxy's end) and (engine's begin - proxy's begin). Each
request narrows that. P and D enclose each other as well: P was done before D began, and D began to read before P got
the notice that let its lease go. Nothing here looks at a wall clock to make a duration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from turnscope.assembly.moments import Moment, clock_of
from turnscope.assembly.sources import ClockState, EmitterState, Offset
from turnscope.assembly.state import EndedRequest, HoldState, State, TurnState
from turnscope.assembly.tokens import FINISHED
from turnscope.assembly.turns import decode
from turnscope.model import SECOND_NS, Attempt, ClockStatus, Event, SteppedClock
from turnscope.semconv import Direction, Leg, TransferState

DRIFT: Final = 2000
"""Monotonic clocks that NTP pulls at may part by one in so many: 0.5 ms a second, what Linux allows it at most."""
STEP_NS: Final = 1_000_000_000
"""A wall clock that parts from its host's monotonic clock by more at once was set."""


class Span(NamedTuple):
    """A duration between two clocks, and how far off it may be either way."""

    ns: int
    error_ns: int


class Clocks:
    """Of all hosts. One with itself is exact; of two, what was seen last counts most."""

    def __init__(self, state: State) -> None:
        self._state = state

    def see(self, emitter: EmitterState, event: Event, arrival_ns: int) -> None:
        """Note what the wall clock of a process's host showed when it said that it lives, and whether it was set
        meanwhile."""
        name, wall_ns = clock_of(event.emitter), event.wall_ns - event.mono_ns
        if event.mono_ns >= emitter.mono_ns:
            step_ns = wall_ns - emitter.wall_ns
            if emitter.mono_ns and abs(step_ns) > STEP_NS:
                emitter.steps += 1
                emitter.step_ns = step_ns
            emitter.mono_ns, emitter.wall_ns = event.mono_ns, wall_ns
        clock = self._state.clocks.get(name)
        if clock is None:
            self._state.clocks[name] = ClockState(
                host=event.emitter.host, last_ns=arrival_ns, mono_ns=event.mono_ns, wall_ns=wall_ns
            )
            return
        clock.last_ns = arrival_ns
        if event.mono_ns >= clock.mono_ns:
            clock.mono_ns, clock.wall_ns = event.mono_ns, wall_ns

    # --- learning -------------------------------------------------------------------------------------
    def learn(self, turn: TurnState, lease: HoldState | None) -> None:
        """Take from a turn that ended well what its parts tell of their hosts' clocks."""
        for name, other, low_ns, high_ns in self._nested(turn, lease):
            if name and other and low_ns <= high_ns:
                self._narrow(name, other, low_ns, high_ns)

    def _nested(self, turn: TurnState, lease: HoldState | None) -> Iterator[tuple[str, str, int, int]]:
        """(outer clock, inner clock, least, most) of what the inner shows less what the outer shows."""
        last = decode(turn)
        attempt = turn.attempt
        if attempt is not None and turn.join == "exact":
            for leg in (turn.prefill, last):
                around = _around(attempt, leg) if leg is not None and leg.clock != turn.attempt_clock else None
                if leg is not None and around is not None:
                    begun_ns, ended_ns = around
                    low, high = leg.mono_ns - ended_ns, leg.request.added_mono_ns - begun_ns
                    yield turn.attempt_clock, leg.clock, low, high
        if turn.prefill is None or last is None or lease is None or turn.prefill.clock == last.clock:
            return
        begun = [
            read.transfer.started_mono_ns
            for read in turn.reads
            if read.transfer.direction is Direction.HANDOFF
            and read.transfer.state is TransferState.DONE
            and read.transfer.started_mono_ns is not None
            and read.clock == last.clock
        ]
        freed = [r.mono_ns for r in lease.reports.values() if not r.expired and r.clock == turn.prefill.clock]
        if begun and freed:
            low, high = min(begun) - min(freed), last.request.added_mono_ns - turn.prefill.mono_ns
            yield turn.prefill.clock, last.clock, low, high

    def _narrow(self, name: str, other: str, low_ns: int, high_ns: int) -> None:
        if name > other:
            name, other, low_ns, high_ns = other, name, -high_ns, -low_ns
        now_ns = self._state.now_ns
        pairs = self._state.offsets.setdefault(name, {})
        known = pairs.get(other)
        if known is None:
            pairs[other] = Offset(low_ns=low_ns, high_ns=high_ns, at_ns=now_ns)
            return
        grown = (now_ns - known.at_ns) // DRIFT
        low, high = max(low_ns, known.low_ns - grown), min(high_ns, known.high_ns + grown)
        known.seen += 1
        # One that contradicts all before it: the clock was pulled faster than thought, or the host started anew.
        known.low_ns, known.high_ns = (low, high) if low <= high else (low_ns, high_ns)
        known.at_ns = now_ns

    # --- asking ---------------------------------------------------------------------------------------
    def between(self, earlier: Moment | None, later: Moment | None) -> Span | None:
        """The time from one moment to another; None while their clocks cannot be compared."""
        if earlier is None or later is None or not earlier.clock or not later.clock:
            return None
        if earlier.clock == later.clock:
            return Span(later.mono_ns - earlier.mono_ns, 0)
        offset = self._offset(earlier.clock, later.clock)
        return None if offset is None else Span(later.mono_ns - offset.ns - earlier.mono_ns, offset.error_ns)

    def _offset(self, name: str, other: str) -> Span | None:
        """What ``other`` shows less what ``name`` shows: seen directly, else by way of a third."""
        direct = self._pair(name, other)
        if direct is not None:
            return direct
        ways = []
        for third in self._state.clocks:
            first, second = self._pair(name, third), self._pair(third, other)
            if first is not None and second is not None:
                ways.append(Span(first.ns + second.ns, first.error_ns + second.error_ns))
        return min(ways, key=lambda way: way.error_ns, default=None)

    def _pair(self, name: str, other: str) -> Span | None:
        if name > other:
            turned = self._pair(other, name)
            return None if turned is None else Span(-turned.ns, turned.error_ns)
        known = self._state.offsets.get(name, {}).get(other)
        if known is None:
            return None
        grown = (self._state.now_ns - known.at_ns) // DRIFT
        return Span((known.low_ns + known.high_ns) // 2, (known.high_ns - known.low_ns + 1) // 2 + grown)

    def compared(self) -> list[ClockStatus]:
        """How far the wall clocks of hosts that were compared are apart."""
        out = []
        for name, pairs in self._state.offsets.items():
            for other, known in pairs.items():
                one, two = self._state.clocks.get(name), self._state.clocks.get(other)
                pair = self._pair(name, other)
                if one is None or two is None or pair is None:
                    continue
                skew_ns = pair.ns + two.wall_ns - one.wall_ns
                out.append(
                    ClockStatus(
                        host=one.host,
                        other=two.host,
                        skew_s=skew_ns / SECOND_NS,
                        error_s=pair.error_ns / SECOND_NS,
                        seen=known.seen,
                    )
                )
        return out

    def stepped(self) -> list[SteppedClock]:
        """Hosts whose wall clock was set, by the process that saw most of it."""
        worst: dict[str, EmitterState] = {}
        for emitter in self._state.emitters.values():
            known = worst.get(clock_of(emitter.emitter))
            if emitter.steps and (known is None or emitter.steps > known.steps):
                worst[clock_of(emitter.emitter)] = emitter
        return [SteppedClock(host=e.emitter.host, steps=e.steps, last_s=e.step_ns / SECOND_NS) for e in worst.values()]

    def prune(self, old_ns: int) -> None:
        """Forget clocks that nothing was heard of since ``old_ns``."""
        for name in [name for name, clock in self._state.clocks.items() if clock.last_ns < old_ns]:
            del self._state.clocks[name]
            self._state.offsets.pop(name, None)
            for pairs in self._state.offsets.values():
                pairs.pop(name, None)


def _around(attempt: Attempt, leg: EndedRequest) -> tuple[int, int] | None:
    """When, by the proxy's clock, it sent the request that became ``leg``, and had its whole answer."""
    if leg.request.finish_reason not in FINISHED or attempt.started_mono_ns is None:
        return None
    if leg.request.leg is Leg.PREFILL:
        status, begun_ns, ended_ns = attempt.prefill_status, attempt.prefill_start_ns, attempt.prefill_end_ns
    else:
        status, begun_ns, ended_ns = attempt.decode_status, attempt.decode_start_ns, attempt.last_byte_ns
        if attempt.outcome != "ok":
            return None
    if status is None or status >= 400 or begun_ns is None or ended_ns is None:
        return None
    return attempt.started_mono_ns + begun_ns, attempt.started_mono_ns + ended_ns


def first_leg(turn: TurnState) -> EndedRequest | None:
    """The P leg (or whole request), else the D leg that its engine accepted first."""
    return turn.prefill or min(turn.decodes, key=lambda leg: leg.request.added_mono_ns, default=None)


def begun(turn: TurnState) -> Moment | None:
    """When the turn began: the client's request at the proxy, else the first leg at its engine."""
    attempt = turn.attempt
    if attempt is not None and attempt.started_mono_ns is not None:
        return Moment(turn.attempt_clock, attempt.started_mono_ns)
    leg = first_leg(turn)
    return Moment(leg.clock, leg.request.added_mono_ns) if leg is not None else None


def ended(turn: TurnState) -> Moment | None:
    """When it ended: the proxy's last byte, else the last leg's end."""
    attempt = turn.attempt
    if attempt is not None and attempt.started_mono_ns is not None and attempt.last_byte_ns is not None:
        return Moment(turn.attempt_clock, attempt.started_mono_ns + attempt.last_byte_ns)
    last = decode(turn) or turn.prefill
    return Moment(last.clock, last.mono_ns) if last is not None else None
