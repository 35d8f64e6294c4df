"""Generated traffic: conversations of a pair, and the ways in which their events may arrive."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.assembly.talk import text
from tests.builders import EPOCH_NS, KEYS, MS, Pair, read, request
from turnscope.marks import Keys
from turnscope.model import Attempt, Emptied, Event, Handle, Hold, Stuck
from turnscope.semconv import Direction, HoldKind, Leg, StuckCause, TransferState

TURN_MS = 2000
NAMED = "chatcmpl-{}-1111aaaa"
"""What an engine makes of a client's ``X-Request-Id``."""
OTHER = Keys(b"another secret")


class Stream(list[Event]):
    """Events that a failing test can show on one line each."""

    def __repr__(self) -> str:
        lines = []
        for event in self:
            body = event.body
            what = {f: getattr(body, f, None) for f in ("request_id", "phase", "state", "finish_reason", "prefill")}
            told = " ".join(f"{name}={value}" for name, value in what.items() if value is not None)
            who = f"{event.emitter.id[-2:]}/{event.seq} {event.mono_ns / 1e6:.0f} ms"
            lines.append(f"{who} {type(body).__name__} {told}")
        return "\n".join(lines)


@st.composite
def conversation(draw: st.DrawFn, pair: Pair, name: str) -> list[Event]:
    """Up to four turns of one session: fetched, local, failed, tried again, aborted, parked, sampled, unattributed;
    faithful or edited."""
    events: list[Event] = []
    prompt, given = draw(st.integers(1, 2000)), None
    session = draw(st.sampled_from([name, name, None]))
    tokens = text(8000, salt=draw(st.integers(0, 2)))
    roles = draw(st.sampled_from([["user"], ["user", "assistant", "user"]]))
    for index in range(draw(st.integers(1, 4))):
        n, at = f"{name}{index}", index * TURN_MS
        offered = given.tokens if given is not None and given.tokens is not None else 0
        fetched = draw(st.sampled_from([0, min(offered, prompt)])) if given is not None else 0
        local = draw(st.integers(0, prompt - fetched))
        finish = draw(st.sampled_from(["stop", "stop", "length", "abort", "error"]))
        fields: dict[str, Any] = {}
        output = draw(st.integers(1, 500))
        if draw(st.integers(0, 3)) == 0:
            tokens[draw(st.integers(0, prompt - 1))] += 1
        if draw(st.booleans()):
            fields["computed_tokens"] = draw(st.one_of(st.none(), st.integers(-5, 2 * prompt)))
        if draw(st.integers(0, 5)) == 0:
            fields |= {"stats_sent": False, "finish_reason": draw(st.sampled_from(["abort", "error"]))}
        if draw(st.integers(0, 7)) == 0:
            cause = draw(st.sampled_from(list(StuckCause)))
            events.append(pair.p.say(Stuck(request_id=pair.p_ids.format(n), cause=cause, handle=given), at + 20))
        told: dict[str, Any] = {}
        if pair.p_ids == NAMED and draw(st.booleans()):
            # The answer did not tell P's identity: what joins them is the id that the client's request was sent with.
            told = {"prefill": None, "x_request_id": n}
        tried = draw(st.integers(-6, 3))
        named, parked = draw(st.booleans()), draw(st.booleans())
        events += failed_attempts(pair, n, tried, at, given=given, session=session, named=named, parked=parked)
        events += pair.turn(
            n,
            at_ms=at,
            prompt=prompt,
            local=local,
            fetched=fetched,
            output=output,
            given=given,
            session=session,
            handle_seen=draw(st.booleans()),
            decode_finish=finish,
            prefill=fields,
            attempt={"message_roles": roles, "number": max(0, tried) + 1, **told},
        )
        texts = tokens[:prompt], tokens[prompt : prompt + output]
        anchor = given.tokens if given is not None else None
        keys, legs = draw(st.sampled_from([KEYS, KEYS, OTHER])), draw(st.sampled_from(["pd", "pd", "p", "d", ""]))
        events += pair.digests(n, *texts, at + 1200, anchor=anchor, keys=keys, legs=legs)
        roles = ["user", "assistant", "user"]
        if given is not None and draw(st.integers(0, 5)) == 0:
            state = draw(st.sampled_from(list(TransferState)))
            body = _read(pair.p_ids.format(n), given.engine_id, given.request_id, state)
            events.append(pair.pw.say(body, at + 120))
        if draw(st.integers(0, 5)) == 0:
            # The same prompt again, as a second sample of the request.
            first, second = (
                request(f"{i}_chatcmpl-{n}", prompt=prompt, handle_in=given, added_mono_ns=at * MS) for i in range(2)
            )
            events += [pair.p.say(second, at + 410), pair.p.say(first, at + 400)]
        if draw(st.integers(0, 9)) == 0:
            events += draw(st.sampled_from([pair.expired, pair.late_notice]))(f"d{n}", at + 1500)
        if draw(st.integers(0, 7)) == 0:
            events.append(draw(st.sampled_from([pair.p, pair.d])).say(Emptied(), at + 1700))
        held = prompt + 1
        given = draw(st.sampled_from([None, pair.handle(n, held), pair.handle(n, held)]))
        prompt += draw(st.integers(1, 600))
    if draw(st.booleans()):
        events.append(pair.d.say(request(f"x{name}", leg=Leg.DECODE), 100))
        events.append(pair.d.say(Hold(request_id=f"y{name}", kind=HoldKind.HOLD, phase="released"), 100))
    return events


def failed_attempts(
    pair: Pair,
    n: str,
    count: int,
    at_ms: int,
    *,
    given: Handle | None,
    session: str | None,
    named: bool,
    parked: bool = False,
) -> list[Event]:
    """``count`` prefills of turn ``n`` that failed, the first with the handle. ``named``: their answers told P's
    identity. ``parked``: P had said of the first that it would never run it."""
    events: list[Event] = []
    for number in range(1, count + 1 if pair.proxy is not None else 1):
        name = f"p{n}-{number}"
        handle = given if number == 1 else None
        leg = request(name, prompt=100, finish_reason="error", handle_in=handle, added_mono_ns=at_ms * MS)
        attempt = Attempt(
            proxy_turn_id=f"t{n}",
            number=number,
            final=False,
            session_id=session,
            prefill=Handle(engine_id="p", request_id=name) if named else None,
            handle_given=handle,
            prefill_status=503,
            outcome="error",
            error_stage="prefill",
            started_wall_ns=EPOCH_NS + at_ms * MS,
            started_mono_ns=at_ms * MS,
            prefill_start_ns=number * MS,
        )
        assert pair.proxy is not None
        if parked and number == 1:
            stuck = Stuck(request_id=name, cause=StuckCause.LOAD_FAILED, handle=handle)
            events.append(pair.p.say(stuck, at_ms + 5))
        events += [pair.p.say(leg, at_ms + 10 * number), pair.proxy.say(attempt, at_ms + 10 * number + 5)]
    return events


def _read(local: str, engine_id: str, request_id: str, state: TransferState) -> Any:
    return read(Direction.REVERSE_FETCH, local=local, remote=(engine_id, request_id), state=state, bytes=1)


@st.composite
def traffic(draw: st.DrawFn) -> Stream:
    """All events of one to three conversations, with a heartbeat of each process, in the order of their times."""
    pair = Pair(proxy=draw(st.booleans()), p_ids=draw(st.sampled_from(["p{}", "p{}", NAMED])))
    events = pair.start()
    for name in "abc"[: draw(st.integers(1, 3))]:
        events += draw(conversation(pair, name))
    events += [process.beat(5 * TURN_MS) for process in pair.processes]
    return Stream(sorted(events, key=lambda e: (e.mono_ns, e.emitter.id, e.seq)))


@st.composite
def disorder(draw: st.DrawFn, events: Stream) -> Stream:
    """Any order, some of them twice."""
    twice = draw(st.lists(st.sampled_from(events), max_size=8))
    shuffled = Stream([*events, *twice])
    Random(draw(st.integers(0, 2**32))).shuffle(shuffled)
    return shuffled


def not_handed_over(pair: Pair, n: int, *, at_ms: int = 0, name: str | None = None) -> list[Event]:
    """P answers without a handle; D gets a request of its own and computes all 39 tokens."""
    name = name or f"abc{n}"
    p_leg = request(f"chatcmpl-{name}-1111aaa{n}", prompt=39, added_mono_ns=at_ms * MS)
    d_leg = request(f"chatcmpl-{name}-2222bbb{n}", leg=Leg.WHOLE, prompt=39, added_mono_ns=(at_ms + 415) * MS)
    events = [pair.p.say(p_leg, at_ms + 400), pair.d.say(d_leg, at_ms + 900)]
    if pair.proxy is not None:
        attempt = Attempt(
            proxy_turn_id=f"t{n}",
            x_request_id=name,
            session_id=f"s{n}",
            prefill_status=200,
            decode_status=200,
            status_code=200,
            finish_reason="stop",
            started_wall_ns=EPOCH_NS + at_ms * MS,
            prefill_start_ns=0,
            prefill_end_ns=400 * MS,
            decode_start_ns=415 * MS,
            first_byte_ns=600 * MS,
            last_byte_ns=900 * MS,
        )
        events.append(pair.proxy.say(attempt, at_ms + 900))
    return events
