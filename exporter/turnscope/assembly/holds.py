"""Hold shard: the life of a hold on D or a lease on P, from all its ranks' words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.assembly.engines import End, Engines
from turnscope.assembly.kept import find_hold
from turnscope.assembly.moments import Moment, clock_of, moment
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.settler import Settler
from turnscope.assembly.state import HoldState, Report, State
from turnscope.assembly.turns import Turns, decode, hold_id_of, turn_id
from turnscope.model import Event, Hold, HoldRecord
from turnscope.semconv import Direction, HoldKind, HoldOutcome, TransferState

RELEASED: Final = "released"
EXPIRED: Final = "expired"
LATE: Final = "late_notice"
HELD: Final = "held"


class Holds:
    """Holds and leases by id. Their end is what was observed, never what a deadline says."""

    def __init__(
        self, state: State, settings: AssemblySettings, engines: Engines, settler: Settler, turns: Turns
    ) -> None:
        self._state = state
        self._settings = settings
        self._engines = engines
        self._settler = settler
        self._turns = turns

    def apply(self, event: Event, body: Hold, arrival_ns: int) -> HoldState:
        """Add one step; the hold, whether open or counted."""
        engine_id, generation = (event.engine.id, event.engine.generation) if event.engine else ("", "")
        key = hold_id_of(engine_id, body.request_id)
        hold = find_hold(self._state, key)
        if hold is None:
            hold = HoldState(
                hold_id=key,
                kind=body.kind,
                engine_id=engine_id,
                generation=generation,
                request_id=body.request_id,
                last_ns=arrival_ns,
            )
            self._state.holds[key] = hold
        hold.last_ns = max(hold.last_ns, arrival_ns)
        if event.engine is not None:
            hold.ranks = max(hold.ranks, (event.engine.tp_size or 1) * (event.engine.pp_size or 1))
        if body.phase == HELD:
            hold.held_ns = arrival_ns
            hold.held_wall_ns, hold.held_at = event.wall_ns, moment(event)
            hold.tokens, hold.blocks, hold.bytes, hold.ttl_ns = body.tokens, body.blocks, body.bytes, body.ttl_ns
            end = self._engines.superseded(engine_id, generation)
            if end is not None:
                hold.lost_wall_ns, hold.lost_at = end
        elif body.phase in (RELEASED, EXPIRED):
            self._report(hold, event, body)
        else:
            hold.late_notices += 1
            now = moment(event)
            since = now.after(hold.last_notice)
            hold.last_notice = now if since is None or since > 0 else hold.last_notice
        return hold

    def _report(self, hold: HoldState, event: Event, body: Hold) -> None:
        """One rank's word; of several the earliest: blocks are given up once."""
        rank = event.engine.rank if event.engine else None
        key = str(rank) if rank is not None else event.emitter.id
        before = hold.reports.get(key)
        since = moment(event).after(Moment(before.clock, before.mono_ns)) if before is not None else None
        if before is None or (since if since is not None else event.wall_ns - before.wall_ns) < 0:
            hold.reports[key] = Report(
                body.phase == EXPIRED,
                event.wall_ns,
                event.mono_ns,
                clock_of(event.emitter),
                body.readers_seen,
                body.readers_expected,
            )

    def reopen(self, hold: HoldState) -> None:
        """A fragment whose begin has come after all is a hold, not counted yet."""
        if hold.fragment and hold.held_ns is not None:
            hold.fragment = hold.counted = False
            hold.due_ns = None
            del self._state.old_holds[hold.hold_id]
            self._state.holds[hold.hold_id] = hold

    def schedule(self, hold: HoldState, now_ns: int) -> int | None:
        """When to look at it next: held and nothing else is known, never."""
        if hold.held_ns is not None and (hold.complete or hold.lost_wall_ns is not None):
            due = hold.due_ns if hold.due_ns is not None and hold.due_ns <= now_ns + self._settings.grace_ns else None
            hold.due_ns = due if due is not None else now_ns + self._settings.grace_ns
        elif hold.held_ns is None or hold.reports:
            hold.due_ns = hold.last_ns + self._settings.max_wait_ns
        else:
            hold.due_ns = None
        return hold.due_ns

    def lose(self, engine_id: str, survivor: str | None, end: End) -> Iterator[HoldState]:
        """The holder is gone: what it held and had not released ended with it, but for its ``survivor`` start's."""
        for hold in self._state.holds.values():
            ended = hold.lost_wall_ns is not None or hold.complete
            if hold.engine_id == engine_id and not ended and hold.generation != survivor:
                hold.lost_wall_ns, hold.lost_at = end
                yield hold

    # --- what became of it ----------------------------------------------------------------------------
    def outcome(self, hold: HoldState) -> HoldOutcome:
        """Expired on any rank is expired. A release is a read only if a reader's transfer says so."""
        if any(report.expired for report in hold.reports.values()):
            return HoldOutcome.TTL if hold.kind is HoldKind.HOLD else HoldOutcome.LEASE
        if hold.lost_wall_ns is not None and not hold.complete:
            return HoldOutcome.HOLDER_LOST
        if hold.kind is HoldKind.HOLD:
            return self._used(hold)
        return self._handed_off(hold)

    def _used(self, hold: HoldState) -> HoldOutcome:
        reads = [use.read for use in self._settler.users(hold.hold_id)]
        if True in reads:
            return HoldOutcome.READ
        return HoldOutcome.NOTIFIED if False in reads else HoldOutcome.UNKNOWN

    def _handed_off(self, hold: HoldState) -> HoldOutcome:
        turn = self._turns.get(turn_id(hold.engine_id, hold.request_id))
        if turn is None:
            return HoldOutcome.UNKNOWN
        states = {read.transfer.state for read in turn.reads if read.transfer.direction is Direction.HANDOFF}
        last = decode(turn)
        if TransferState.DONE in states or (last is not None and not states and last.request.external_tokens):
            return HoldOutcome.READ
        if last is not None and last.request.finish_reason == "abort":
            return HoldOutcome.ABORTED
        return HoldOutcome.NOTIFIED if states or last is not None else HoldOutcome.UNKNOWN

    def leaver(self, hold: HoldState) -> str | None:
        """The turn that left it; a lease is left by its own turn."""
        if hold.kind is HoldKind.LEASE:
            return turn_id(hold.engine_id, hold.request_id)
        return self._state.left_by.get(hold.hold_id)

    def users(self, hold: HoldState) -> set[str]:
        """Turns that were given its handle."""
        return {use.turn_id for use in self._settler.users(hold.hold_id)}

    def suspects(self, hold: HoldState) -> set[str]:
        """Turns that what is known of the hold may make suspicious."""
        users = self._settler.users(hold.hold_id)
        if hold.kind is HoldKind.LEASE:
            return {turn_id(hold.engine_id, hold.request_id)} if hold.late_notices else set()
        if not users or (len(users) == 1 and not hold.late_notices and self.outcome(hold) is HoldOutcome.READ):
            return set()
        return {use.turn_id for use in users}

    def lease_id(self, engine_id: str | None, request_id: str | None) -> str | None:
        """Of the lease that a P leg leaves."""
        if engine_id is None or request_id is None:
            return None
        return hold_id_of(engine_id, request_id)

    def record(self, hold: HoldState) -> HoldRecord:
        """As stored."""
        users = self._settler.users(hold.hold_id)
        lease = hold.kind is HoldKind.LEASE
        left_by = self.leaver(hold)
        session = self._settler.session(left_by) if left_by is not None else None
        readers = [use.turn_id for use in users if use.read] or [use.turn_id for use in users]
        over = hold.complete or hold.lost_wall_ns is not None or hold.counted
        reports = hold.reports.values()
        held_ns = _held_ns(hold)
        begin_ns = hold.held_wall_ns
        return HoldRecord(
            hold_id=hold.hold_id,
            revision=hold.revision,
            kind=hold.kind,
            engine=self._engines.name(hold.engine_id),
            engine_id=hold.engine_id,
            generation=hold.generation,
            request_id=hold.request_id,
            session_id=session[0] if session else None,
            turn_id=left_by,
            used_by_turn_id=left_by if lease else (readers[0] if readers else None),
            tokens=hold.tokens,
            blocks=hold.blocks,
            bytes=hold.bytes,
            started_ns=begin_ns or 0,
            ttl_ns=hold.ttl_ns,
            ended_ns=_ended_ns(hold, held_ns) if over else None,
            held_ns=held_ns,
            deadline_ns=begin_ns + hold.ttl_ns if begin_ns is not None and hold.ttl_ns is not None else None,
            overdue_ns=_overdue_ns(hold, held_ns),
            outcome=hold.outcome,
            readers_expected=max((r.readers_expected for r in reports if r.readers_expected is not None), default=None),
            readers_seen=min((r.readers_seen for r in reports if r.readers_seen is not None), default=None),
            late_notices=hold.late_notices,
            late_notice_ns=late_notice_ns(hold),
        )


def _held_ns(hold: HoldState) -> int | None:
    """Until the last rank's report, of those on the scheduler's clock; until its holder was gone if none came."""
    begin = hold.held_at
    if begin is None or not hold.reports:
        after = hold.lost_at.after(begin) if hold.lost_at is not None else None
        return max(0, after) if after is not None else None
    times = [r.mono_ns for r in hold.reports.values() if r.clock == begin.clock]
    return max(0, max(times) - begin.mono_ns) if times else None


def _ended_ns(hold: HoldState, held_ns: int | None) -> int | None:
    """As wall time: reckoned from its begin where that was timed, since the wall clock may have been set meanwhile."""
    if held_ns is not None and hold.held_wall_ns is not None:
        return hold.held_wall_ns + held_ns
    return hold.ended_wall_ns


def _overdue_ns(hold: HoldState, held_ns: int | None) -> int | None:
    """Of a hold whose release was observed: D renews its leases, and of a lost one nobody saw the end."""
    if hold.kind is not HoldKind.HOLD or not hold.reports or held_ns is None or hold.ttl_ns is None:
        return None
    return held_ns - hold.ttl_ns if held_ns > hold.ttl_ns else None


def late_notice_ns(hold: HoldState) -> int | None:
    """From its begin to the last notice that came too late."""
    after = hold.last_notice.after(hold.held_at) if hold.last_notice is not None else None
    return max(0, after) if after is not None else None
