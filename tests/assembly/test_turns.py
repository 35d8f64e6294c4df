"""One turn: legs, reads and attempt make one row and one count."""

from __future__ import annotations

from tests.assembly.run import Run
from tests.builders import MS, Pair


def test_a_turn_of_two_legs_counts_once_and_its_tokens_add_up() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1", prompt=1000, output=200)]).wait()
    turn = run.turns()["p1"]
    assert (turn.path, turn.reason, turn.status) == ("recompute", "first_turn", "ok")
    assert (turn.prompt_tokens, turn.computed_tokens, turn.fetched_tokens) == (1000, 1000, 0)
    assert (turn.output_tokens, turn.handoff_tokens, turn.ttft_ns) == (200, 999, 600 * MS)
    assert run.count("turns_total") == 1
    assert run.count("turns_total", "prefill-0", "recompute", "first_turn") == 1
    assert run.count("requests_total") == 2
    assert run.count("requests_total", "decode-0", "decode", "stop") == 1
    assert run.count("prompt_tokens_total", "prefill-0", "computed") == 1000
    assert run.count("output_tokens_total", "decode-0") == 200


def test_the_next_turn_fetches_what_the_first_left() -> None:
    pair = Pair()
    first = pair.turn("1", prompt=1000, output=200)
    second = pair.turn("2", at_ms=5000, prompt=1250, fetched=1199, given=pair.handle("1", 1199))
    run = Run().feed([*pair.start(), *first, *second]).wait()
    turn = run.turns()["p2"]
    assert (turn.path, turn.reason, turn.turn_index) == ("reverse_fetch", "none", 2)
    assert (turn.fetched_tokens, turn.computed_tokens) == (1199, 51)
    assert turn.fetched_bytes == 75 * 2_097_152
    assert turn.previous_turn_id == run.turns()["p1"].turn_id
    assert run.count("transfer_reads_total", "prefill-0", "reverse_fetch", "done") == 1
    assert run.count("transfer_reads_total", "decode-0", "handoff", "done") == 2
    assert run.count("request_prompt_tokens_total", "prefill-0", "external_kv_transfer") == 1199
    assert run.holds()["d1"].outcome == "read"
    assert run.holds()["p1"].outcome == "read"
