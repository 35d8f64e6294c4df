"""Requests that a client sends again: retries after a failure, forks after an answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.assembly.run import Run
from tests.builders import Pair
from turnscope.model import Event

SHAPE: dict[str, Any] = {"message_roles": ["system", "user"], "message_chars": [100, 20]}
FAILED = {**SHAPE, "outcome": "error", "error_stage": "decode", "status_code": 502}


def again(pair: Pair, first: dict[str, Any], second: dict[str, Any], **fields: Any) -> list[Event]:
    """Two requests of one session."""
    finish = "stop" if first.get("outcome", "ok") == "ok" else "error"
    events = [*pair.start(), *pair.turn("1", attempt=first, decode_finish=finish)]
    return [*events, *pair.turn("2", at_ms=3000, attempt=second, **fields)]


def test_the_same_request_after_a_failure_is_a_retry_and_after_an_answer_a_fork() -> None:
    for first, kind in ((FAILED, "retry"), (SHAPE, "fork")):
        run = Run().feed(again(Pair(), first, SHAPE)).wait()
        one, two = run.turns()["p1"], run.turns()["p2"]
        assert (two.retry_of, two.fork_of) == ((one.turn_id, None) if kind == "retry" else (None, one.turn_id))
        assert (one.retry_of, one.fork_of) == (None, None)
        assert run.count("repeated_turns_total", kind) == 1
        assert run.count("turns_total") == 2


def test_a_third_one_repeats_the_first() -> None:
    pair = Pair()
    events = [*again(pair, SHAPE, SHAPE), *pair.turn("3", at_ms=6000, attempt=SHAPE)]
    run = Run().feed(events).wait()
    assert run.turns()["p3"].fork_of == run.turns()["p1"].turn_id
    assert run.count("repeated_turns_total", "fork") == 2


@pytest.mark.parametrize(
    ("second", "fields"),
    [
        ({**SHAPE, "message_chars": [100, 21]}, {}),
        ({**SHAPE, "message_roles": ["system", "tool"]}, {}),
        (SHAPE, {"prompt": 1001}),
        (SHAPE, {"session": "another"}),
        ({}, {}),
    ],
)
def test_what_differs_in_roles_lengths_prompt_or_session_repeats_nothing(
    second: dict[str, Any], fields: dict[str, Any]
) -> None:
    run = Run().feed(again(Pair(), SHAPE, second, **fields)).wait()
    assert (run.turns()["p2"].retry_of, run.turns()["p2"].fork_of) == (None, None)
    assert run.count("repeated_turns_total") == 0


def test_without_a_proxys_word_nothing_is_taken_for_a_repetition() -> None:
    pair = Pair(proxy=False)
    events = [*pair.start(), *pair.turn("1", prefill={"session_id": "s"})]
    run = Run().feed([*events, *pair.turn("2", at_ms=3000, prefill={"session_id": "s"})]).wait()
    assert run.turns()["p2"].fork_of is None
