"""Evidence that a turn's answer may be wrong. Each kind is latched once a turn; none of them is a failure."""

from __future__ import annotations

from turnscope.assembly.clocks import Clocks
from turnscope.assembly.engines import Engines
from turnscope.assembly.evidence import fetch_reads, used_hold
from turnscope.assembly.handles import Handles
from turnscope.assembly.kept import find_hold
from turnscope.assembly.moments import Moment
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.settler import Settler
from turnscope.assembly.state import EndedRequest, HoldState, State, TurnState
from turnscope.assembly.tokens import FINISHED, LOAD_FAILED
from turnscope.assembly.traits import fetched_from_hold
from turnscope.assembly.turns import decode, given_handle, hold_id_of
from turnscope.semconv import Direction, Suspicion, TransferState


class Suspicions:
    """Looks at a turn, the hold it used and the lease it left."""

    def __init__(
        self,
        state: State,
        settings: AssemblySettings,
        engines: Engines,
        settler: Settler,
        handles: Handles,
        clocks: Clocks,
    ) -> None:
        self._state = state
        self._settings = settings
        self._engines = engines
        self._settler = settler
        self._handles = handles
        self._clocks = clocks

    def of(self, turn: TurnState) -> set[Suspicion]:
        """All that the evidence at hand speaks for."""
        found: set[Suspicion] = set()
        if turn.verdict is not None and turn.verdict.mismatch is not None:
            found.add(Suspicion.KV_MISMATCH)
        if self._not_the_first_reader(turn):
            found.add(Suspicion.DUPLICATE_HANDLE)
        if self._read_after_release(turn) or self._handed_off_after_release(turn):
            found.add(Suspicion.READ_AFTER_RELEASE)
        if self._stale(turn):
            found.add(Suspicion.STALE_HANDLE)
        if self._answered_after_failed_load(turn):
            found.add(Suspicion.ANSWERED_AFTER_FAILED_LOAD)
        return found

    def _hold(self, key: str | None) -> HoldState | None:
        return find_hold(self._state, key or "")

    def _not_the_first_reader(self, turn: TurnState) -> bool:
        """Another turn, another attempt or another sample had read it before: a handle is good for one read."""
        key = used_hold(turn)
        if key is None or not fetched_from_hold(turn):
            return False
        readers = [use.turn_id for use in self._settler.users(key) if use.read]
        return (len(readers) > 1 and readers[0] != turn.turn_id) or _samples_that_read(turn) > 1

    def _read_after_release(self, turn: TurnState) -> bool:
        """The holder got a notice for blocks it had given up, and this turn read them: any reader where they had
        expired, else any but the first, whose read was what released them."""
        key = used_hold(turn)
        hold = self._hold(key)
        if key is None or hold is None or not hold.late_notices or not hold.reports or not fetched_from_hold(turn):
            return False
        expired = any(report.expired for report in hold.reports.values())
        return expired or self._not_the_first_reader(turn)

    def _handed_off_after_release(self, turn: TurnState) -> bool:
        """D read P's blocks after the lease had lapsed."""
        if turn.prefill_engine_id is None or turn.prefill_request_id is None:
            return False
        lease = self._hold(hold_id_of(turn.prefill_engine_id, turn.prefill_request_id))
        if lease is None or not lease.late_notices or not any(r.expired for r in lease.reports.values()):
            return False
        states = {read.transfer.state for read in turn.reads if read.transfer.direction is Direction.HANDOFF}
        last = decode(turn)
        return TransferState.DONE in states or (not states and last is not None and bool(last.request.external_tokens))

    def _stale(self, turn: TurnState) -> bool:
        """It fetched what its holder was seen to have given up, or from an engine that had started anew, before the
        prefill began. Not told where the two hosts' clocks cannot be compared."""
        given = given_handle(turn)
        if given is None or turn.prefill is None or not fetched_from_hold(turn):
            return False
        key = used_hold(turn)
        hold, known = self._hold(key), self._handles.get(key)
        lost = self._engines.lost(given.engine_id, known.generation, None) if known is not None else None
        over = (lost.at if lost is not None else None, hold.ended_at if hold is not None else None)
        began = Moment(turn.prefill.clock, turn.prefill.request.added_mono_ns)
        since = [span for span in (self._clocks.between(at, began) for at in over) if span is not None]
        return any(span.ns > self._settings.clock_ns + span.error_ns for span in since)

    def _answered_after_failed_load(self, turn: TurnState) -> bool:
        """A load failed, and the request was answered although its engine should have failed it."""
        prefill, read = turn.prefill, [r for r in fetch_reads(turn) if r.state in LOAD_FAILED]
        if prefill is not None and read and self._should_have_failed(prefill):
            return True
        failed = {
            read.transfer.request_id
            for read in turn.reads
            if read.transfer.direction is Direction.HANDOFF and read.transfer.state in LOAD_FAILED
        }
        return any(leg.request.request_id in failed and self._should_have_failed(leg) for leg in turn.decodes)

    def _should_have_failed(self, leg: EndedRequest) -> bool:
        engine = self._engines.get(leg.engine_id)
        policy = engine.engine.load_failure_policy if engine is not None else None
        return policy == "fail" and leg.request.finish_reason in FINISHED


def _samples_that_read(turn: TurnState) -> int:
    return len(
        {
            read.transfer.request_id
            for read in turn.reads
            if read.transfer.direction is not Direction.HANDOFF and read.transfer.state is TransferState.DONE
        }
    )
