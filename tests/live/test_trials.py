"""What is judged of the trials with network cards: by window and by turn, in both views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from live.sysfs import Sysfs
from live.trials import APART, TOGETHER, TRIALS, UPPER_BOUND, Done, Said, Trial, judge, plugged
from tests.live.test_verdict import row, truth
from turnscope.receivers.fabric import efa_ports
from turnscope.semconv import Transport

BY_NAME = {trial.name: trial for trial in TRIALS}


def right(trial: Trial) -> tuple[Done, dict[str, list[dict[str, Any]]]]:
    """A trial of which all is said that must be."""
    turns = [truth(answer_id="chatcmpl-a")] * trial.turns
    windows = {view: Said(trial.transport[view], f"{trial.because[view]}: figures") for view in (TOGETHER, APART)}
    rows = {view: [stored(trial, said)] for view, said in windows.items()}
    return Done(trial, turns, windows), rows


def stored(trial: Trial, said: Said) -> dict[str, Any]:
    """The turn as it must be stored."""
    bound = f"; {UPPER_BOUND}" if trial.shared and said.transport == Transport.EFA else ""
    return row(
        decode_request_id="chatcmpl-a-1",
        transport=str(said.transport),
        transport_inferred_from=f"handoff {said.transport}: {said.because}{bound}",
    )


@pytest.mark.parametrize("name", BY_NAME)
def test_a_trial_of_which_the_right_things_are_said_is_right(name: str) -> None:
    done, rows = right(BY_NAME[name])
    assert list(judge([done], rows)) == []


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("view", [TOGETHER, APART])
def test_another_transport_is_wrong_in_a_window_and_in_a_turn(name: str, view: str) -> None:
    done, rows = right(BY_NAME[name])
    for other in set(Transport) - {done.trial.transport[view]}:
        window = {**done.windows, view: Said(other, done.trial.because[view])}
        (said,) = judge([Done(done.trial, done.turns, window)], rows)
        assert said.startswith(f"cards, {name}, {view}: window {other}, expected {done.trial.transport[view]}")
        said, *_ = judge([done], {**rows, view: [{**rows[view][0], "transport": str(other)}]})
        assert said.startswith(f"cards, {name}, {view}: turn {other}, expected")


def test_the_right_transport_for_another_reason_is_wrong() -> None:
    done, rows = right(BY_NAME["efa"])
    rows[APART][0]["transport_inferred_from"] = "the name of the host"
    assert list(judge([done], rows)) == ["cards, efa, apart: turn efa, but because the name of the host"]
    rows[APART][0]["transport_inferred_from"] = f"{done.trial.because[APART]}; {UPPER_BOUND}"
    (said,) = judge([done], rows)
    assert said.startswith("cards, efa, apart: turn efa, an upper bound")


def test_foreign_traffic_on_the_card_makes_a_turns_figure_an_upper_bound() -> None:
    done, rows = right(BY_NAME["shared card"])
    rows[APART][0]["transport_inferred_from"] = done.trial.because[APART]
    (said,) = judge([done], rows)
    assert said.startswith("cards, shared card, apart: turn efa, no upper bound")


def test_a_turn_or_a_window_that_is_missing_is_wrong() -> None:
    done, rows = right(BY_NAME["ethernet"])
    assert list(judge([done], {**rows, APART: []})) == ["cards, ethernet, apart: 0 turns in the store, not one"]
    assert list(judge([Done(done.trial, [], {})], rows)) == ["cards, ethernet: could not be done between two looks"]
    gone = Done(done.trial, done.turns, {**done.windows, TOGETHER: None})
    assert list(judge([gone], rows)) == ["cards, ethernet, together: no window"]


def test_every_transport_comes_out_of_some_trial_in_some_view() -> None:
    assert {t for trial in TRIALS for t in trial.transport.values()} == set(Transport)


def test_a_trial_that_is_done_again_finds_the_device_there(tmp_path: Path) -> None:
    tree = Sysfs(tmp_path)
    plugged(tree)
    for trial in TRIALS:
        for _ in range(2):
            trial.before(tree)
            trial.between(tree)
            assert bool(efa_ports(tree.infiniband)) == (trial.name not in ("device goes", "device missing"))
