"""What of a prompt had been computed before in its session: recomputed, new, rewritten."""

from __future__ import annotations

import msgspec
import pytest

from tests.assembly.run import Run
from tests.assembly.talk import FAITHFUL, SYSTEM, USER, Talk, answer_of, encloses, message, text, two_turns
from tests.builders import KEYS, D, P, Pair, Process
from turnscope import marks
from turnscope.assembly.continuity import HISTORY
from turnscope.marks import LONGEST, Keys
from turnscope.model import Digest, Engine, Event
from turnscope.semconv import Leg


def test_a_first_turn_is_all_new() -> None:
    run = two_turns(FAITHFUL)
    first = run.turns()["p1"]
    assert (first.continuity_evidence, first.local_hit_tokens, first.fetched_tokens) == ("first_turn", 0, 0)
    assert (first.computed_tokens, first.recomputed_tokens, first.new_tokens) == (1000, 0, 1000)
    assert run.count("prompt_tokens_total", "prefill-0", "new") == 1000 + 51
    assert run.count("prompt_tokens_total", "prefill-0", "computed") == 0
    assert run.count("turns_continuity_total", "prefill-0", "first_turn") == 1
    assert run.count("turns_continuity_total", "prefill-0", "digests") == 1


def test_a_first_turn_that_turnscope_sees_but_that_brings_answers_along_is_not_split() -> None:
    pair = Pair()
    events, told = Talk(pair).turn("1", SYSTEM)
    turn = Run().feed([*pair.start(), *events, *told]).wait().turns()["p1"]
    assert (turn.continuity_evidence, turn.recomputed_tokens, turn.new_tokens) == ("unknown", None, None)


def test_what_was_computed_twice_for_want_of_a_handle_is_avoidable_and_has_its_reason() -> None:
    run = two_turns(FAITHFUL, handle=False, attempt={"message_roles": ["user", "assistant", "user"]})
    turn = run.turns()["p2"]
    assert (turn.path, turn.reason) == ("recompute", "handle_not_given")
    assert turn.recomputed_tokens is not None
    assert turn.new_tokens is not None
    assert 1599 - 16 < turn.recomputed_tokens <= 1599
    assert turn.recomputed_tokens + turn.new_tokens == turn.computed_tokens == 1650
    avoidable = run.count("avoidable_recompute_tokens_total", "prefill-0", "handle_not_given")
    assert avoidable == run.count("prompt_tokens_total", "prefill-0", "recomputed") == turn.recomputed_tokens
    assert run.count("prompt_tokens_total", "prefill-0", "computed") == 0


@pytest.mark.parametrize(
    ("reason", "session", "d"),
    [
        ("no_handle_from_decode", "s", D),
        ("feature_off_decode", "s", msgspec.structs.replace(D, bidirectional=False)),
        ("no_session_id", None, D),
    ],
)
def test_what_streamed_answers_without_a_handle_made_later_turns_compute_again_is_counted_by_its_cause(
    reason: str, session: str | None, d: Engine
) -> None:
    pair = Pair(d=d)
    talk, prompt, events, reusable = Talk(pair, session), SYSTEM, pair.start(), 0
    for n in range(5):
        turn = talk.turn(str(n), prompt, at_ms=5000 * n, first=n == 0, handle_seen=False)
        events += [*turn[0], *turn[1]]
        held = [*prompt, *talk.answers[str(n)]]
        reusable += len(held) - 1 if n < 4 else 0
        prompt = [*held, *text(50, salt=n)]
    run = Run().feed(events).wait()
    assert [turn.reason for turn in run.turns().values()].count(reason) == (4 if session else 5)
    avoidable = run.count("avoidable_recompute_tokens_total", "prefill-0", reason)
    assert run.count("avoidable_recompute_tokens_total") == avoidable
    if session is None:
        assert avoidable == 0, "which turns belong together is not known, nor what was computed before"
    else:
        assert reusable - 4 * 16 < avoidable <= reusable
    assert run.count("transfer_bytes_total", "prefill-0", "reverse_fetch") == 0


def test_a_prefix_edited_early_makes_the_rest_new_and_rewritten() -> None:
    edited = [*SYSTEM[:20], 7, 8, *SYSTEM[21:], *answer_of(), *USER]
    run = two_turns(edited, handle=False)
    turn = run.turns()["p2"]
    assert (turn.path, turn.reason) == ("recompute", "prefix_diverged")
    assert encloses(turn, 20, within=LONGEST)
    assert turn.rewritten_tokens is not None
    assert turn.new_tokens is not None
    assert 800 < turn.rewritten_tokens <= 1650 - 20 < turn.new_tokens + 20
    assert run.count("rewritten_tokens_total", "prefill-0") == turn.rewritten_tokens
    assert turn.recomputed_tokens is not None
    assert turn.recomputed_tokens <= 20


def test_where_enough_agrees_before_the_prompt_parts_the_missing_handle_is_the_reason() -> None:
    turn = two_turns([*SYSTEM, *USER, *answer_of()], handle=False).turns()["p2"]
    assert (turn.reason, encloses(turn, 1000, within=LONGEST)) == ("handle_not_given", True)


def test_fetched_text_that_was_moved_is_suspect_and_not_rewritten_since_it_was_not_computed() -> None:
    turn = two_turns([*SYSTEM[:20], 7, 8, *SYSTEM[21:], *answer_of(), *USER]).turns()["p2"]
    assert turn.suspicions == ["kv_mismatch"]
    assert (turn.new_tokens, turn.rewritten_tokens) == (52, 1)


def test_a_failed_turn_in_between_left_nothing_and_is_passed_over() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    failed = pair.turn(
        "2",
        at_ms=3000,
        prompt=1650,
        prefill={"finish_reason": "error", "computed_tokens": None, "local_hit_tokens": None, "external_tokens": None},
        attempt={"outcome": "error", "error_stage": "prefill", "decode_start_ns": None, "handle_out": None},
    )
    failed = [e for e in failed if e.emitter not in (pair.d.emitter, pair.dw.emitter)]
    three = talk.turn("3", FAITHFUL, at_ms=6000)
    turn = Run().feed([*pair.start(), *one[0], *one[1], *failed, *three[0], *three[1]]).wait().turns()["p3"]
    assert turn.continuity_evidence == "digests"
    assert turn.recomputed_tokens is not None
    assert turn.recomputed_tokens > 1599 - 16


def test_a_return_to_an_older_branch_finds_what_that_branch_had_computed() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    compacted = talk.turn("2", message(300, salt=8), at_ms=3000)
    three = talk.turn("3", FAITHFUL, at_ms=6000)
    events = [e for turn in (one, compacted, three) for part in turn for e in part]
    turn = Run().feed([*pair.start(), *events]).wait().turns()["p3"]
    assert turn.recomputed_tokens is not None
    assert turn.recomputed_tokens > 1599 - 16
    assert (turn.diverged_after, turn.reason) == (0, "prefix_diverged")


@pytest.mark.parametrize(("between", "found"), [(HISTORY - 1, True), (HISTORY, False)])
def test_a_prompt_is_compared_with_so_many_turns_before_it_and_no_more(between: int, found: bool) -> None:
    pair = Pair()
    talk = Talk(pair)
    turns = [talk.turn("1", SYSTEM, 600, first=True)]
    turns += [talk.turn(f"x{n}", message(300, salt=20 + n), at_ms=3000 * (n + 1)) for n in range(between)]
    turns.append(talk.turn("3", FAITHFUL, at_ms=40_000))
    run = Run().feed([*pair.start(), *(e for turn in turns for part in turn for e in part)]).wait()
    assert ((run.turns()["p3"].recomputed_tokens or 0) > 1599 - 16) is found


@pytest.mark.parametrize(("missing", "known"), [("d1", False), ("none", True)])
def test_a_branch_that_cannot_be_compared_leaves_open_what_it_had_computed(missing: str, known: bool) -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    compacted = talk.turn("2", message(300, salt=8), at_ms=3000)
    three = talk.turn("3", FAITHFUL, at_ms=6000)
    told = [e for turn in (one, compacted, three) for e in turn[1]]
    told = [e for e in told if not (isinstance(e.body, Digest) and e.body.request_id == missing)]
    turn = Run().feed([*pair.start(), *one[0], *compacted[0], *three[0], *told]).wait().turns()["p3"]
    assert (turn.new_tokens is not None, turn.continuity_evidence == "digests") == (known, known)
    assert turn.diverged_after == 0


def test_a_turn_that_cannot_be_compared_does_not_matter_before_one_that_the_prompt_continues() -> None:
    pair = Pair()
    talk = Talk(pair)
    one = talk.turn("1", SYSTEM, 600, first=True)
    two = talk.turn("2", FAITHFUL, at_ms=3000)
    three = talk.turn("3", [*FAITHFUL, *talk.answers["2"], *USER], at_ms=6000)
    told = [e for e in (*one[1], *two[1], *three[1]) if isinstance(e.body, Digest) and e.body.request_id != "d1"]
    turn = Run().feed([*pair.start(), *one[0], *two[0], *three[0], *told]).wait().turns()["p3"]
    assert turn.continuity_evidence == "digests"
    assert turn.new_tokens is not None


def test_on_an_aggregated_engine_the_answer_counts_as_seen_and_not_as_prompt() -> None:
    whole = msgspec.structs.replace(P, role="aggregated", bidirectional=None, connector=None, prefix_caching=True)
    pair = Pair(whole)
    answers = [message(200, salt=9), message(200, salt=10)]
    prompts = [SYSTEM, [*SYSTEM, *answers[0], *USER]]
    events: list[Event] = pair.start()
    for n, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        events += _whole(pair, str(n), prompt, answer, at_ms=3000 * n, local=n * 992)
    turn = Run().feed(events).wait(100).turns()["p1"]
    assert (turn.path, turn.computed_tokens) == ("local_hit", 258)
    assert turn.recomputed_tokens is not None
    assert turn.new_tokens is not None
    assert 0 < turn.recomputed_tokens <= 207
    assert turn.recomputed_tokens + turn.new_tokens == 258


def _whole(pair: Pair, n: str, prompt: list[int], answer: list[int], *, at_ms: int, local: int) -> list[Event]:
    assert pair.proxy is not None
    keep = (pair.p.emitter, pair.proxy.emitter)
    leg = {"leg": Leg.WHOLE, "handle_out": None, "finish_reason": "stop", "output_tokens": len(answer)}
    roles = ["user"] if n == "0" else ["user", "assistant", "user"]
    turn = pair.turn(
        n,
        at_ms=at_ms,
        prompt=len(prompt),
        local=local,
        prefill=leg,
        attempt={"message_roles": roles, "handle_out": None},
    )
    told = marks.digest(
        [*prompt, *answer[:-1]], KEYS, request_id=f"p{n}", leg=Leg.WHOLE, input_tokens=len(prompt), anchor_tokens=None
    )
    return [*(e for e in turn if e.emitter in keep), pair.p.say(told, at_ms + 1000)]


def test_a_turn_that_cannot_be_compared_does_not_matter_behind_one_that_the_prompt_continues() -> None:
    pair = Pair()
    second = Pair(msgspec.structs.replace(P, id="q", generation="q-1"))
    second.p = Process("00000000000000e1", "engine", second.p.engine)
    second.pw = Process("00000000000000e2", "worker", second.pw.engine)
    second.d, second.dw, second.proxy = pair.d, pair.dw, pair.proxy
    talk, elsewhere = Talk(pair), Talk(second)
    one = talk.turn("1", SYSTEM, 600, first=True, keys=Keys(b"another"))
    two = elsewhere.turn("2", FAITHFUL, at_ms=3000)
    three = talk.turn("3", [*FAITHFUL, *elsewhere.answers["2"], *USER], at_ms=6000)
    events = [e for turn in (one, two, three) for part in turn for e in part]
    turn = Run().feed([*pair.start(), *events]).wait().turns()["p3"]
    assert (turn.continuity_evidence, turn.local_miss) == ("digests", "other_worker")
