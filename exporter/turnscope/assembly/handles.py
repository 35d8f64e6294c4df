"""The life of each of D's handles: issued, held, given, read or not, released, lost, each with who observed it.

Keyed by (D engine id, request id), hashed as for its hold; D's generation is payload. Steps only add up, so the order
in which events arrive makes no difference.
"""

from __future__ import annotations

from typing import Final

from turnscope.assembly.state import HandleState, State
from turnscope.assembly.turns import hold_id, hold_id_of
from turnscope.model import Attempt, Event, Handle, Hold, HoldUse, Request, Transfer
from turnscope.semconv import Direction, HandleStep, HoldKind, Leg, Observer, TransferState

_READS: Final = {
    TransferState.DONE: HandleStep.READ,
    TransferState.NOTICE_ONLY: HandleStep.NOTIFIED,
    TransferState.DECLINED: HandleStep.DECLINED,
    TransferState.FAILED: HandleStep.FAILED,
    TransferState.HANDSHAKE_FAILED: HandleStep.FAILED,
}
_PHASES: Final = {
    "held": HandleStep.HELD,
    "released": HandleStep.RELEASED,
    "expired": HandleStep.EXPIRED,
    "late_notice": HandleStep.READ_LATE,
}
_ORDER: Final[dict[str, int]] = {step: place for place, step in enumerate(HandleStep)}


class Handles:
    """Handles by id."""

    def __init__(self, state: State) -> None:
        self._state = state

    def see(self, event: Event, arrival_ns: int) -> set[str]:
        """Note what an event tells; the handles that have a new step."""
        engine_id = event.engine.id if event.engine is not None else ""
        changed: set[str] = set()

        def note(key: str, step: HandleStep, by: Observer, *, handle: Handle | None = None, own: bool = False) -> None:
            known = self._state.handles.setdefault(key, HandleState(last_ns=arrival_ns))
            known.last_ns = max(known.last_ns, arrival_ns)
            if own and event.engine is not None:
                known.generation = event.engine.generation
            if handle is not None and handle.tokens is not None:
                known.tokens = handle.tokens
            name = f"{step} {by}"
            before = known.steps.get(name)
            if before is None or event.wall_ns < before:
                known.steps[name] = event.wall_ns
            if before is None:
                changed.add(key)

        match event.body:
            case Request(leg=Leg.PREFILL, handle_in=Handle() as handle) | HoldUse(handle=handle):
                note(hold_id(handle), HandleStep.GIVEN, Observer.PREFILL, handle=handle)
            case Request(leg=Leg.DECODE | Leg.WHOLE, handle_out=Handle() as handle):
                note(hold_id(handle), HandleStep.ISSUED, Observer.DECODE, handle=handle, own=True)
            case Attempt() as attempt:
                if attempt.handle_given is not None:
                    note(hold_id(attempt.handle_given), HandleStep.GIVEN, Observer.PROXY, handle=attempt.handle_given)
                if attempt.handle_out is not None:
                    note(hold_id(attempt.handle_out), HandleStep.ISSUED, Observer.PROXY, handle=attempt.handle_out)
            case Hold(kind=HoldKind.HOLD, phase=phase) if phase in _PHASES:
                note(hold_id_of(engine_id, event.body.request_id), _PHASES[phase], Observer.DECODE, own=True)
            case Transfer(direction=Direction.REVERSE_FETCH) as read:
                holder, held = read.remote_engine_id, read.remote_request_id
                if holder and held:
                    note(hold_id_of(holder, held), _READS[read.state], Observer.PREFILL)
        return changed

    def lost(self, key: str, wall_ns: int) -> None:
        """Its holder is gone, and it was still held."""
        known = self._state.handles.get(key)
        if known is not None:
            known.steps.setdefault(f"{HandleStep.LOST} {Observer.SIDECAR}", wall_ns)

    def get(self, key: str | None) -> HandleState | None:
        """What is known; None for a handle of which nothing was ever heard."""
        return self._state.handles.get(key or "")

    def story(self, key: str) -> list[str]:
        """``<step> <observer>``, in the order of a handle's life."""
        known = self.get(key)
        return sorted(known.steps, key=lambda name: (_ORDER[name.partition(" ")[0]], name)) if known else []

    def prune(self, before_ns: int) -> None:
        """Forget handles of which nothing was heard since, unless they are held."""
        handles, state = self._state.handles, self._state
        old = [key for key, known in handles.items() if known.last_ns < before_ns]
        for key in old:
            if key not in state.holds and key not in state.left_by:
                del handles[key]
