"""Finalising: rows and contributions of turns and holds, once each, and revisions for what comes later."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from turnscope.assembly import counts, learning
from turnscope.assembly.agent_spans import SPAN, AgentSpans, may_ask
from turnscope.assembly.attempts import Attempts
from turnscope.assembly.attribution import Attribution
from turnscope.assembly.clocks import Clocks
from turnscope.assembly.continuity import Continuity
from turnscope.assembly.engines import Engines
from turnscope.assembly.evidence import Witness
from turnscope.assembly.handles import Handles
from turnscope.assembly.holds import Holds, late_notice_ns
from turnscope.assembly.kept import find_hold
from turnscope.assembly.ledger import Ledger, one
from turnscope.assembly.opportunity import followup
from turnscope.assembly.pairs import Pairs
from turnscope.assembly.refetch import learn_fetch, price
from turnscope.assembly.rows import build
from turnscope.assembly.settings import AssemblySettings
from turnscope.assembly.settler import Concerned, Settler
from turnscope.assembly.sources import Ended
from turnscope.assembly.state import HoldState, State, TurnState
from turnscope.assembly.status import note_answer, note_continuity, note_explained, note_reason
from turnscope.assembly.suspicions import Suspicions
from turnscope.assembly.turns import Turns, anchored, given_handle
from turnscope.catalog import NO_ENGINE
from turnscope.model import Contribution, HoldRecord, Turn
from turnscope.semconv import Status

_BY_PLACE: Final = (
    "reason",
    "turn_index",
    "previous_turn_id",
    "retry_of",
    "fork_of",
    *(field for field in Turn.__struct_fields__ if field.startswith("diverged_")),
)
"""What only a turn's place in its session tells: it stays as it was told when that place is forgotten."""


class Closing:
    """What changed waits in ``dirty`` until ``settle``; closing looks at settled state only.

    Settling happens when something is due, when a fact is late, and no later than the grace after a change; never by a
    mere tick: so revisions are the same however often ``tick`` is called, and at replay.
    """

    def __init__(
        self,
        state: State,
        settings: AssemblySettings,
        ledger: Ledger,
        engines: Engines,
        turns: Turns,
        settler: Settler,
        holds: Holds,
        continuity: Continuity,
        handles: Handles,
        suspicions: Suspicions,
        attribution: Attribution,
        clocks: Clocks,
        spans: AgentSpans,
    ) -> None:
        self._state = state
        self._settings = settings
        self._ledger = ledger
        self._engines = engines
        self._turns = turns
        self._settler = settler
        self._holds = holds
        self._continuity = continuity
        self._handles = handles
        self._suspicions = suspicions
        self._witness = Witness(settings, engines, settler, handles)
        self._attempts = Attempts(settings, engines, turns, settler)
        self._pairs = Pairs(state, engines)
        self._attribution = attribution
        self._clocks = clocks
        self._spans = spans
        self.dirty: set[str] = set(state.turns)
        self.dirty_holds: set[str] = set()

    # --- settling -------------------------------------------------------------------------------------
    @property
    def unsettled(self) -> bool:
        """Whether something waits."""
        return bool(self.dirty or self.dirty_holds)

    def concern(self, whom: Concerned) -> None:
        """They are to be looked at again."""
        self.dirty |= whom.turns
        self.dirty_holds |= whom.holds

    def settle(self) -> None:
        """Take changed turns into sessions and uses, and write newer rows of those that were counted already."""
        if not self.unsettled:
            return
        again: set[str] = set()
        while self.dirty:
            again |= self._judge_changed()
        for hold in [h for h in map(self._state.old_holds.get, sorted(self.dirty_holds)) if h is not None]:
            again |= self._holds.suspects(hold)
            self._revise_hold(hold)
        self.dirty_holds = set()
        for key in sorted(again):
            turn = self._turns.get(key)
            if turn is not None and turn.counted:
                self._revise(turn)
            elif turn is not None:
                self._show(turn)

    def _judge_changed(self) -> set[str]:
        """Judge what changed by everything that is known, and note whom that concerns; those of them that have a row,
        or stand still and are to have one.

        Open turns as well: what they leave in caches and holds concerns turns that may be counted before them. Nothing
        is counted or written before all verdicts agree, else it would be by the order in which they were come to.
        """
        changed: dict[str, TurnState] = {}
        while self.dirty:
            keys, self.dirty = sorted(self.dirty), set()
            for key in keys:
                turn = self._turns.get(key)
                lease = self._lease(turn) if turn is not None else None
                if lease is not None:
                    self.dirty_holds.add(lease)
                if turn is None or turn.closed == "fragment":
                    continue
                self.concern(self._settler.note(turn))
                changed[key] = turn
        for _, turn in sorted(changed.items()):
            self.dirty |= self._continuity.judge(turn)
            if turn.counted:
                self._turns.put(turn)
        return {key for key, turn in changed.items() if turn.counted or turn.row is not None or turn.stuck is not None}

    # --- turns ----------------------------------------------------------------------------------------
    def close_turn(self, turn: TurnState) -> None:
        """Count a turn; an attempt of a turn counted elsewhere, and facts without an anchor, are put away."""
        turn.counted, turn.closed = True, self._closes_as(turn)
        if turn.closed == "attempt":
            self._ledger.count(f"attempt:{turn.turn_id}", self._pairs.count(turn.reads))
            self.withdraw(turn, self._part_of(turn))
        elif turn.closed == "fragment":
            kind = "direct" if turn.prefill is not None else "decode" if turn.decodes else "transfer"
            self._state.direct_requests += kind == "direct"
            self._ledger.count(f"fragment:{turn.turn_id}", [one("turnscope_fragments_total", kind)])
            self.withdraw(turn, None)
        else:
            self._count(turn)
        self._turns.put(turn)

    def _closes_as(self, turn: TurnState) -> str:
        """What it is, by what is known of it: see ``TurnState.closed``."""
        if turn.attempt is not None and not self._settler.is_final(turn.attempt):
            return "attempt"
        return "fragment" if self._turns.direct(turn) or not anchored(turn) else "turn"

    def _part_of(self, turn: TurnState) -> str | None:
        """The turn that an attempt is counted with."""
        return self._settler.counted_as(turn.attempt) if turn.attempt is not None else None

    def drop_attempt(self, turn: TurnState) -> None:
        """An attempt whose leg is one of several, which are counted without it."""
        turn.counted, turn.closed = True, "attempt"
        self.dirty |= self._settler.forget(turn.turn_id)
        self._ledger.count(f"fragment:{turn.turn_id}", [one("turnscope_fragments_total", "attempt")])
        self.withdraw(turn, None)
        self._turns.put(turn)

    def _count(self, turn: TurnState) -> None:
        lease = self._lease(turn)
        self._clocks.learn(turn, find_hold(self._state, lease or ""))
        prefill_engine, decode_engine = map(self._engines.get, (turn.prefill_engine_id, turn.decode_engine_id))
        if turn.reads and prefill_engine is not None and given_handle(turn) is not None:
            turn.rate = prefill_engine.rate
        turn.usual_step_ns = learning.usual_step_ns(decode_engine)
        self._latch(turn)
        row = self._row(turn)
        learning.learn_prefill(prefill_engine, turn, row)
        learning.learn_step(decode_engine, row)
        learn_fetch(prefill_engine, turn, row)
        contributions = counts.turn(row) + self._pairs.count(turn.reads) + self._attempts.wasted(turn)
        contributions += self._answer(turn, row) + followup(self._state, self._settler, turn, row)
        note_reason(prefill_engine, row)
        note_explained(self._state, row)
        note_continuity(self._state, row)
        self._ledger.count(f"turn:{turn.turn_id}", contributions, turn=row)

    def _lease(self, turn: TurnState) -> str | None:
        return self._holds.lease_id(turn.prefill_engine_id, turn.prefill_request_id)

    def _answer(self, turn: TurnState, row: Turn) -> list[Contribution]:
        """Whether the answer, as the proxy saw it, carried D's handle."""
        attempt = turn.attempt
        if attempt is None or row.status != Status.OK or not row.has_decode:
            return []
        note_answer(self._engines.get(row.decode_engine_id), attempt)
        streamed = "yes" if attempt.streamed else "no"
        handle = "yes" if attempt.handle_out is not None else "no"
        return [one("turnscope_answers_total", row.decode_engine or NO_ENGINE, streamed, handle)]

    def stands(self, turn: TurnState) -> None:
        """A turn that was found to stand still: counted as stuck at once, and its row handed out before it ends. How it
        ends is counted when it does."""
        self.dirty.add(turn.turn_id)
        self.settle()
        assert turn.stuck is not None
        prefill = turn.stuck.stage == "prefill"
        engine = self._engines.name(turn.prefill_engine_id if prefill else turn.decode_engine_id)
        labels = engine, str(turn.stuck.cause)
        self._ledger.count(f"stuck:{turn.turn_id}/{turn.stuck.cause}", [one("turnscope_stuck_total", *labels)])

    def _show(self, turn: TurnState) -> None:
        """An open turn has a row as long as it stands still and is a turn by itself, as far as known."""
        kind = self._closes_as(turn)
        if turn.stuck is not None and kind == "turn":
            self._renew(turn)
        else:
            self.withdraw(turn, self._part_of(turn) if kind == "attempt" else None)

    def withdraw(self, turn: TurnState, part_of: str | None) -> None:
        """What was shown is no turn by itself, or goes on: a last revision of its row says so, if it has one."""
        shown = turn.row
        if shown is None or (shown.withdrawn and shown.part_of == part_of):
            return
        turn.revision += 1
        turn.row = structs.replace(shown, revision=turn.revision, withdrawn=True, part_of=part_of)
        self._ledger.revise(turn=turn.row)

    def _build(self, turn: TurnState) -> Turn:
        row = build(turn, self._settler, self._engines, self._settings, self._witness, self._attempts, self._clocks)
        if turn.row is not None and self._settler.forgot(turn.turn_id):
            row = structs.replace(row, **{field: getattr(turn.row, field) for field in _BY_PLACE})
        price(turn, row, self._engines.get(turn.prefill_engine_id))
        self._ask_caller(turn, row)
        return row

    def _ask_caller(self, turn: TurnState, row: Turn) -> None:
        """A turn whose request named no session is of its caller's."""
        if row.caller_trace_id is None or row.caller_span_id is None or not may_ask(row):
            return
        turn.caller_session = self._spans.session_of(row.caller_trace_id, row.caller_span_id, turn.caller_session)
        if turn.caller_session is not None:
            row.session_id, row.session_source = turn.caller_session, SPAN

    def _row(self, turn: TurnState) -> Turn:
        self._attribution.judge(turn)
        row = self._build(turn)
        turn.revision += 1
        row.revision = turn.revision
        turn.row = row
        return row

    def _revise(self, turn: TurnState) -> None:
        """A newer row of a turn that was counted, if later facts changed it; of an attempt, if it was shown and is
        another turn's now."""
        if turn.closed == "attempt":
            self.withdraw(turn, self._part_of(turn))
        if turn.closed == "turn":
            self._latch(turn)
            old = turn.row
            row = self._renew(turn)
            if old is not None and row.path != old.path:
                self._ledger.count(
                    f"reclassified:{turn.turn_id}/{turn.revision}",
                    [one("turnscope_turns_reclassified_total", old.path, row.path)],
                )
        self._turns.put(turn)

    def _renew(self, turn: TurnState) -> Turn:
        """Its row, handed out if it is another than before."""
        self._attribution.judge(turn)
        row = self._build(turn)
        row.revision = turn.revision
        if row != turn.row:
            turn.revision += 1
            row.revision, turn.row = turn.revision, row
            self._ledger.revise(turn=row)
        return row

    def _latch(self, turn: TurnState) -> None:
        """Count new suspicions; what was latched and has no evidence any more is withdrawn, once."""
        found, engine = self._suspicions.of(turn), self._engines.name(turn.prefill_engine_id)
        for kind in sorted(found - set(turn.suspicions)):
            turn.suspicions.append(kind)
            self._state.suspicions[kind] = self._state.suspicions.get(kind, 0) + 1
            self._ledger.count(f"latch:{turn.turn_id}/{kind}", [one("turnscope_suspicions_total", engine, kind)])
        for latched in turn.suspicions:
            if latched not in found and latched not in turn.withdrawn:
                turn.withdrawn.append(latched)
                withdrawn = one("turnscope_suspicions_withdrawn_total", latched)
                self._ledger.count(f"withdrawn:{turn.turn_id}/{latched}", [withdrawn])

    # --- holds ----------------------------------------------------------------------------------------
    def close_hold(self, hold: HoldState) -> None:
        """Count a hold that has ended; what never was seen to begin is a fragment."""
        del self._state.holds[hold.hold_id]
        self._state.old_holds[hold.hold_id] = hold
        hold.counted = True
        if hold.held_ns is None:
            hold.fragment = True
            self._ledger.count(
                f"fragment:{hold.hold_id}", counts.hold_fragment(self._engines.name(hold.engine_id), hold)
            )
            return
        hold.outcome = self._holds.outcome(hold)
        hold.revision = 1
        hold.row = record = self._record(hold)
        self._note_end(hold)
        self._ledger.count(f"hold:{hold.hold_id}", counts.hold(record), hold=record)
        for key in sorted(self._holds.suspects(hold)):
            turn = self._turns.get(key)
            if turn is not None and turn.counted:
                self._revise(turn)

    def _revise_hold(self, hold: HoldState) -> None:
        if hold.fragment or hold.row is None:
            return
        hold.outcome = self._holds.outcome(hold)
        record = self._record(hold)
        self._note_late(hold)
        if record != hold.row:
            hold.revision += 1
            record.revision, hold.row = hold.revision, record
            self._ledger.revise(hold=record)

    def _record(self, hold: HoldState) -> HoldRecord:
        record = self._holds.record(hold)
        record.steps = self._handles.story(hold.hold_id)
        return record

    def _note_end(self, hold: HoldState) -> None:
        engine = self._engines.get(hold.engine_id)
        if engine is not None and engine.engine.generation == hold.generation:
            engine.ended.setdefault(hold.kind, Ended()).count += 1
        self._note_late(hold)

    def _note_late(self, hold: HoldState) -> None:
        """Given up before its reader's notice came: once a hold, however many ranks say so."""
        if not hold.late_notices or not any(report.expired for report in hold.reports.values()):
            return
        engine = self._engines.get(hold.engine_id)
        if engine is None or engine.engine.generation != hold.generation:
            return
        ended = engine.ended.setdefault(hold.kind, Ended())
        ended.read_late += not hold.read_late
        ended.latest_read_ns = max(ended.latest_read_ns, late_notice_ns(hold) or 0)
        hold.read_late = True
