"""Every reason of the vocabulary comes out of a stream of events: what happened, told by engines and proxy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.assembly.run import Run
from tests.assembly.talk import Talk, message
from tests.builders import SECOND, D, P, Pair, Process, read
from turnscope.model import Attempt, Event, Handle, Stuck, Turn
from turnscope.semconv import Direction, Reason, StuckCause, TransferState

OFF_P = msgspec.structs.replace(P, bidirectional=False)
OFF_D = msgspec.structs.replace(D, bidirectional=False)
SHORT_D = msgspec.structs.replace(D, hold_ttl_ns=60 * SECOND)
FAILED: dict[str, Any] = {"external_tokens": 1199, "finish_reason": "error", "stats_sent": False}


def first(pair: Pair, **fields: Any) -> list[Event]:
    return [*pair.start(), *pair.turn("1", prompt=1000, **fields)]


def then(pair: Pair, *, at_ms: int = 5000, **fields: Any) -> list[Event]:
    """The turn in question."""
    return pair.turn("2", at_ms=at_ms, **{"prompt": 1250, **fields})


def given(pair: Pair, **fields: Any) -> list[Event]:
    """The same, with the first turn's handle."""
    return [*first(pair), *then(pair, given=pair.handle("1", 1199), **fields)]


def tried(pair: Pair, state: TransferState, **fields: Any) -> list[Event]:
    """The same, with P's word on its read."""
    body = read(Direction.REVERSE_FETCH, local="p2", remote=("d", "d1"), state=state)
    return [*given(pair, **fields), pair.pw.say(body, 5050)]


def refused(pair: Pair) -> list[Event]:
    assert pair.proxy is not None
    body = Attempt(proxy_turn_id="t2", prefill_status=400, status_code=400, outcome="error", error_stage="prefill")
    return [*pair.start(), pair.proxy.say(body, 10)]


def stuck(pair: Pair) -> list[Event]:
    body = Stuck(request_id="p2", cause=StuckCause.LOAD_FAILED, handle=pair.handle("1", 1199))
    return [*first(pair), pair.p.say(body, 5010)]


def retried(pair: Pair) -> list[Event]:
    assert pair.proxy is not None
    body = Attempt(
        proxy_turn_id="t2", final=False, session_id="s", handle_given=pair.handle("1", 1199), outcome="error"
    )
    return [*first(pair), pair.proxy.say(body, 4900), *then(pair, attempt={"number": 2})]


def sibling(pair: Pair) -> list[Event]:
    other = pair.turn("3", at_ms=4900, prompt=1260, fetched=1199, given=pair.handle("1", 1199))
    return [*first(pair), *other, *then(pair)]


def empty(pair: Pair) -> list[Event]:
    out = Handle(engine_id="p", request_id="p2", tokens=0, blocks=0)
    return [*first(pair), *then(pair, prefill={"preemptions": 1, "handle_out": out})]


def gone(pair: Pair) -> list[Event]:
    again = Process("00000000000000d1", "engine", msgspec.structs.replace(D, generation="d-2"))
    later = [e for e in then(pair, at_ms=30_000) if e.emitter.id not in (pair.d.emitter.id, pair.dw.emitter.id)]
    return [*first(pair), again.started(20_000), *later]


STREAMS: dict[Reason, tuple[Callable[[Pair], list[Event]], Pair]] = {
    Reason.NONE: (lambda p: given(p, fetched=1199), Pair()),
    Reason.FIRST_TURN: (lambda p: [*p.start(), *then(p)], Pair()),
    Reason.NO_SESSION_ID: (lambda p: [*p.start(), *then(p, session=None)], Pair()),
    Reason.REJECTED_BY_FRONTEND: (refused, Pair()),
    Reason.NO_HANDLE_FROM_DECODE: (lambda p: [*first(p, handle_seen=False), *then(p)], Pair()),
    Reason.FEATURE_OFF_PREFILL: (given, Pair(OFF_P)),
    Reason.FEATURE_OFF_DECODE: (lambda p: [*first(p, handle_seen=False), *then(p)], Pair(d=OFF_D)),
    Reason.PROXY_ENTRY_EXPIRED: (lambda p: [*first(p), *then(p, at_ms=62_000)], Pair(d=SHORT_D)),
    Reason.HANDLE_NOT_GIVEN: (lambda p: [*first(p), *then(p)], Pair()),
    Reason.DECLINED_EXPIRED: (lambda p: tried(p, TransferState.DECLINED, prefill=FAILED), Pair()),
    Reason.BELOW_THRESHOLD: (lambda p: given(p, local=1136), Pair()),
    Reason.LOCAL_HIT_COVERS: (lambda p: given(p, local=1199), Pair()),
    Reason.HANDLE_CONSUMED_BY_RETRY: (retried, Pair()),
    Reason.HANDLE_TAKEN_BY_SIBLING: (sibling, Pair()),
    Reason.PREVIOUS_TURN_ABORTED: (
        lambda p: [*first(p, decode_finish="abort", attempt={"outcome": "cancelled", "finish_reason": None}), *then(p)],
        Pair(),
    ),
    Reason.STOPPED_BY_STRING: (lambda p: [*first(p, decode_finish="abort"), *then(p)], Pair()),
    Reason.HOLDER_LOST: (gone, Pair()),
    Reason.HANDSHAKE_FAILED: (lambda p: tried(p, TransferState.HANDSHAKE_FAILED, prefill=FAILED), Pair()),
    Reason.TRANSFER_FAILED: (lambda p: tried(p, TransferState.FAILED, prefill=FAILED), Pair()),
    Reason.EMPTY_HANDOFF_AFTER_PREEMPTION: (empty, Pair()),
    Reason.PREFIX_DIVERGED: (lambda p: [*first(p, output=600), *then(p)], Pair()),
    Reason.STUCK: (stuck, Pair()),
    Reason.OTHER: (given, Pair()),
    Reason.UNKNOWN: (
        lambda p: [*p.start(), *then(p, attempt={"message_roles": ["user", "assistant", "user"]})],
        Pair(),
    ),
}


def test_each_reason_has_a_stream() -> None:
    assert set(STREAMS) == set(Reason)


@pytest.mark.parametrize("expected", list(Reason))
def test_a_stream_of_events_has_its_reason(expected: Reason) -> None:
    make, pair = STREAMS[expected]
    events = make(pair)
    run = Run().feed([*events, *Pair.beats(pair, 60_001, 30_000)]).wait(100)
    rows = run.turns()
    turn = rows["p2"] if "p2" in rows else next(iter(rows.values()))
    assert turn.reason == expected
    explained = "no" if expected is Reason.UNKNOWN else "yes"
    if run.count("turns_ended_total", "prefill-0", "stuck") == 0:
        assert run.count("turns_explained_total", "both", explained) + run.count("turns_explained_total", "proxy") > 0


@pytest.mark.parametrize(("code", "refuses"), [(400, True), (499, True), (500, False), (503, False), (399, False)])
def test_only_an_answer_of_400_to_499_is_the_frontend_s_refusal(code: int, refuses: bool) -> None:
    pair = Pair()
    assert pair.proxy is not None
    body = Attempt(proxy_turn_id="t2", prefill_status=code, status_code=code, outcome="error", error_stage="prefill")
    (turn,) = Run().feed([*pair.start(), pair.proxy.say(body, 10)]).wait(100).turns().values()
    assert (turn.reason == Reason.REJECTED_BY_FRONTEND) is refuses


def test_by_its_length_alone_a_prompt_goes_on_from_what_was_held_unless_it_is_shorter() -> None:
    for prompt, reason in ((1199, Reason.HANDLE_NOT_GIVEN), (1198, Reason.PREFIX_DIVERGED)):
        pair = Pair()
        events = [*first(pair), *then(pair, prompt=prompt)]
        assert Run().feed(events).wait().turns()["p2"].reason == reason


@pytest.mark.parametrize(
    ("beyond", "external", "reason"),
    [(64, 0, "handle_not_given"), (63, 0, "prefix_diverged"), (64, 1, "prefix_diverged")],
)
def test_a_prompt_goes_on_from_what_was_held_where_so_much_agrees_beyond_its_hits_as_is_worth_a_fetch(
    beyond: int, external: int, reason: str
) -> None:
    def second(local: int, split: dict[str, int]) -> Turn:
        pair = Pair()
        talk, system = Talk(pair), message(1000, salt=1)
        one = talk.turn("1", system, 600, first=True)
        prompt = [*system, *talk.answers["1"][:300], *message(300, salt=2)]
        two = talk.turn("2", prompt, at_ms=5000, local=local, prefill=split)
        return Run().feed([*pair.start(), *one[0], *one[1], *two[0], *two[1]]).wait().turns()["p2"]

    agrees = second(0, {}).diverged_after
    assert agrees is not None
    local = agrees - beyond
    split = {"external_tokens": external, "computed_tokens": 1600 - local - external}
    assert second(local, split).reason == reason


def test_the_share_of_unknown_reasons_is_counted_by_the_hooks_that_told() -> None:
    pair, alone = Pair(), Pair(proxy=False)
    run = Run().feed(given(pair, fetched=1199)).wait(100)
    assert run.count("turns_explained_total", "both", "yes") == 2
    assert run.count("turns_explained_total", "both", "no") == 0
    run = Run().feed([*alone.start(), *alone.turn("1")]).wait(100)
    assert run.count("turns_explained_total", "engines", "no") == 1
    assert run.assembler.status(run.now_ns).explained == {"engines no": 1}
