"""Continuity: how a turn's prompt continues what D holds for it and what its session had computed before.

Works on digests alone. They may come after the turn they are of: a turn is counted with what is known at its time, five
seconds after it is complete, and judged again when a digest that it had missed arrives, or a turn before it changes.
Until it is counted each verdict is made of nothing but what is known then, so that the order in which it became known
makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import msgspec

from turnscope.assembly.digests import Digests
from turnscope.assembly.evidence import turn_split, used_hold
from turnscope.assembly.mismatch import mismatch
from turnscope.assembly.settler import Settler
from turnscope.assembly.state import Mismatch, Past, TurnState, Verdict
from turnscope.assembly.taint import Taint, first_in_each
from turnscope.assembly.tokens import Split
from turnscope.assembly.traits import digests_of
from turnscope.assembly.turns import brings_answers, given_handle
from turnscope.marks import Shared, common_prefix, comparable, seen_elsewhere
from turnscope.model import Digest, Event
from turnscope.semconv import ContinuityEvidence

HISTORY: Final = 8
"""Earlier turns of a session that a prompt is compared with, newest first, until one tells all."""


def _joined(parts: list[Shared]) -> Shared | None:
    """Of one sequence compared in parts: the nearest difference that any of them tells of, and the farthest agreement
    short of it."""
    if not parts:
        return None
    high = min((part.high for part in parts if part.high is not None), default=None)
    return Shared(max(part.low for part in parts if high is None or part.low < high), high)


def _names(earlier: list[Past]) -> str:
    names = "".join(key for past in earlier for key in past.digests)
    return blake2b(names.encode(), digest_size=8).hexdigest()


def _kept(old: Verdict, new: Verdict, *, doubted: bool) -> Verdict:
    """What a counted turn was known by stays known when it has been forgotten since: comparisons with the same turns as
    before that tell less than they did. ``doubted``: what was inferred is not, since its source was refuted."""
    forgotten = old.before is not None and new.before is None and old.against == new.against
    kept = msgspec.structs.replace(old if forgotten else new)
    if old.of_hold and not new.of_hold:
        kept.continues, kept.of_hold = old.continues, True
    kept.wrong_hold = new.wrong_hold or (None if doubted else old.wrong_hold)
    kept.wrong_hit = new.wrong_hit or (None if doubted else old.wrong_hit)
    kept.wrong_decode = new.wrong_decode or (None if doubted else old.wrong_decode)
    return kept


class Continuity:
    """Judges a turn by the digests at hand; the verdict stays with the turn when they are forgotten."""

    def __init__(self, settler: Settler, digests: Digests, taint: Taint) -> None:
        self._settler = settler
        self._digests = digests
        self._taint = taint
        self._doubted: set[str] = set()
        """Turns to be judged again because what they were suspected by was refuted."""

    def judge(self, turn: TurnState) -> set[str]:
        """Set the turn's verdict; other turns that are to be judged again because of it."""
        own = self._digests.get(turn.turn_id, turn.turn_id)
        split = turn_split(turn)
        old = turn.verdict
        verdict = self._compare(turn, own, split)
        verdict.wrong_hold = self._taint.held(used_hold(turn))
        if own is not None:
            self._look_for_taint(turn, own, split, verdict)
        doubted = turn.turn_id in self._doubted
        self._doubted.discard(turn.turn_id)
        if old is not None and turn.counted:
            verdict = _kept(old, verdict, doubted=doubted)
        given = given_handle(turn)
        wrong = verdict.mismatch = mismatch(verdict, split, given.tokens if given is not None else None)
        turn.verdict = verdict
        if wrong is None and (old is None or old.mismatch is None):
            return set()
        touched = self._spread(turn, own, wrong) - {turn.turn_id}
        if wrong is None:
            self._doubted |= touched
        return touched

    def emptied(self, event: Event) -> set[str]:
        """An engine's prefix cache was emptied; turns to be judged again: what they found there since then was not what
        they were suspected by."""
        if event.engine is None:
            return set()
        touched = self._taint.emptied(event.engine.id, event.engine.generation, event.mono_ns)
        self._doubted |= touched
        return touched

    def _spread(self, turn: TurnState, own: Digest | None, wrong: Mismatch | None) -> set[str]:
        """Note what the turn left that is wrong, or no more; without its digest its caches stay as they were known."""
        on_prefill, on_decode = (wrong.on_prefill, wrong.on_decode) if wrong is not None else (None, None)
        touched = self._taint.hold(turn.turn_id, set(digests_of(turn)) - {turn.turn_id}, on_decode)
        if own is not None:
            if turn.prefill is not None:
                touched |= self._taint.file(turn.turn_id, turn.prefill, own, on_prefill)
            for leg in first_in_each(turn.decodes):
                touched |= self._taint.file(turn.turn_id, leg, own, on_decode)
        return touched

    def _look_for_taint(self, turn: TurnState, own: Digest, split: Split | None, verdict: Verdict) -> None:
        if turn.prefill is not None and split is not None:
            verdict.wrong_hit = self._taint.hit(turn.turn_id, turn.prefill, split.local or 0, own)
        for leg in turn.decodes:
            hit = self._taint.hit(turn.turn_id, leg, leg.request.local_hit_tokens or 0, own)
            verdict.wrong_decode = verdict.wrong_decode or hit

    # --- comparing ------------------------------------------------------------------------------------
    def _compare(self, turn: TurnState, own: Digest | None, split: Split | None) -> Verdict:
        earlier = [past for past in self._settler.earlier(turn) if past.digests][-HISTORY:]
        verdict = Verdict(against=_names(earlier))
        if not earlier and self._first(turn):
            verdict.evidence, verdict.before = ContinuityEvidence.FIRST_TURN, 0
        elif own is not None and earlier:
            self._with_session(turn, own, split, earlier, verdict)
        held = self._of_hold(turn, own) if own is not None else None
        if held is not None:
            verdict.continues, verdict.of_hold = held, True
        given = given_handle(turn)
        if verdict.evidence is ContinuityEvidence.UNKNOWN and given is not None and given.tokens is not None:
            verdict.evidence = ContinuityEvidence.LENGTHS
        return verdict

    def _first(self, turn: TurnState) -> bool:
        """The proxy saw it bring no answer along, and its session begins with it."""
        session = self._settler.session(turn.turn_id)
        return session is not None and not session[1].forgotten and brings_answers(turn) is False

    def _of_hold(self, turn: TurnState, own: Digest) -> Shared | None:
        """Against what the given handle stands for: what D says of it, and P's prompt of the turn that left it."""
        hold = used_hold(turn)
        if hold is None:
            return None
        leaver = self._settler.leaver(hold)
        keys = [hold] if leaver is None else [hold, leaver]
        return _joined(self._parts(keys, own, turn.turn_id))

    def _parts(self, keys: Iterable[str], own: Digest, asker: str) -> list[Shared]:
        digests = [self._digests.get(key, asker) for key in keys]
        parts = [common_prefix(digest, own) for digest in digests if digest is not None]
        return [part for part in parts if part is not None]

    def _with_session(
        self, turn: TurnState, own: Digest, split: Split | None, earlier: list[Past], verdict: Verdict
    ) -> None:
        """Against the turns before it, until one is found that it continues to its end. Those until then must be known
        whole: what is beyond one that is not is not known to be new."""
        mine = (turn.prefill.engine_id, turn.prefill.generation) if turn.prefill is not None else None
        before, continued = 0, False
        compared: list[Digest] = []
        for past in reversed(earlier):
            told = self._digests.get(past.digests[0], turn.turn_id)
            if not continued and (told is None or not comparable(told, own)):
                if told is not None or own.unverifiable is not None:
                    verdict.evidence = ContinuityEvidence.UNVERIFIABLE
                return
            shared = _joined(self._parts(past.digests, own, turn.turn_id))
            if told is None or shared is None:
                continue
            if past is earlier[-1]:
                verdict.continues = shared
            compared.append(told)
            before = max(before, shared.low)
            continued = continued or shared.high is None
            served = min(shared.low, past.prompt_tokens) if past.prefill is not None else 0
            if past.prefill == mine:
                verdict.here = max(verdict.here, served)
            else:
                verdict.elsewhere = max(verdict.elsewhere, served)
            if continued and past.prefill == mine:
                break
        verdict.evidence, verdict.before = ContinuityEvidence.DIGESTS, before
        if split is not None and split.computed is not None:
            start = max(before, split.prompt - split.computed)
            moved = start < split.prompt
            verdict.rewritten = seen_elsewhere(own, compared, start=start, end=split.prompt) if moved else 0
