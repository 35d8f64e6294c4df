"""Data-parallel engines stay apart: ids, holds, names and sums."""

from __future__ import annotations

import msgspec

from tests.assembly.run import Run
from tests.builders import BLOCK_BYTES, BLOCK_TOKENS, D, Pair, Process, request
from turnscope.model import Engine
from turnscope.outputs import spans
from turnscope.semconv import Leg


def engine_of(rank: int) -> Engine:
    return msgspec.structs.replace(D, id=f"d_dp{rank}", dp_rank=rank, num_blocks=100)


def two_decodes(**facts: str) -> tuple[Pair, Pair]:
    """One P, and a D of two data-parallel engines: each in a pair of its own, with processes of their own."""
    first, second = (Pair(d=msgspec.structs.replace(engine_of(rank), **facts)) for rank in (0, 1))
    second.d = Process("00000000000000e1", "engine", second.d.engine)
    second.dw = Process("00000000000000e2", "worker", second.dw.engine)
    second.p, second.pw, second.proxy = first.p, first.pw, first.proxy
    return first, second


def test_what_two_engines_hold_is_shown_for_each_and_adds_up() -> None:
    zero, one = two_decodes()
    run = Run().feed([*zero.start(), one.d.started(), one.dw.started()])
    run.feed([zero.held("a", 10 * BLOCK_TOKENS, 10)])
    run.feed([one.held(f"b{n}", 10 * BLOCK_TOKENS, 10 + n) for n in range(3)])
    assert run.sample("held_requests", "decode-0", "hold") == 1
    assert run.sample("held_requests", "decode-1", "hold") == 3
    held = [run.sample("held_bytes", f"decode-{n}", "hold") / BLOCK_BYTES for n in (0, 1)]
    assert held == [10, 30]
    status = run.assembler.status(run.now_ns)
    known = {e.name: e.engine for e in status.engines}
    assert [(known[f"decode-{n}"].id, known[f"decode-{n}"].dp_rank) for n in (0, 1)] == [("d_dp0", 0), ("d_dp1", 1)]
    usage = [blocks / (known[f"decode-{n}"].num_blocks or 0) for n, blocks in enumerate(held)]
    assert (usage, sum(usage) / 2) == ([0.1, 0.3], 0.2)


def test_a_handle_of_one_engine_is_looked_up_there_although_the_other_has_a_request_of_that_name() -> None:
    zero, one = two_decodes()
    run = Run().feed([*zero.start(), one.d.started(), one.dw.started()])
    run.feed([zero.held("d1", 1199, 10), *one.turn("1", at_ms=20)])
    second = one.turn("2", at_ms=2_000, prompt=1250, fetched=1199, given=one.handle("1", 1199))
    run.feed(second).wait()
    turn = run.turns()["p2"]
    assert (turn.path, turn.decode_engine, turn.decode_dp_rank, turn.prefill_dp_rank) == (
        "reverse_fetch",
        "decode-1",
        1,
        None,
    )
    ended = {record.engine_id: record.outcome for fact in run.facts if (record := fact.hold) and record.kind == "hold"}
    assert ended == {"d_dp1": "read"}
    assert run.sample("held_requests", "decode-0", "hold") == 1
    assert turn.used_hold_id == next(r.hold_id for f in run.facts if (r := f.hold) and r.engine_id == "d_dp1")


def test_the_rank_is_on_the_turns_span() -> None:
    zero, one = two_decodes()
    run = Run().feed([*zero.start(), one.d.started(), one.dw.started(), *one.turn("1")]).wait()
    (root, *_) = spans.encode([run.turns()["p1"]], version="0").resource_spans[0].scope_spans[0].spans
    found = {a.key: a.value for a in root.attributes}
    assert found["turnscope.turn.decode_dp_rank"].int_value == 1
    assert found["turnscope.turn.decode_engine"].string_value == "decode-1"
    assert "turnscope.turn.prefill_dp_rank" not in found


def test_requests_that_came_through_two_api_servers_count_once_each_on_their_engine() -> None:
    """API servers have no scheduler: what is heard comes from the engine cores, whoever took the request in."""
    zero, one = two_decodes()
    run = Run().feed([*zero.start(), one.d.started(), one.dw.started()])
    for n, server in enumerate(("a", "b") * 5):
        engine = zero.d if n % 5 else one.d
        run.feed([engine.say(request(f"cmpl-{server}-{n}", leg=Leg.WHOLE, prompt=100), 100 + n)])
    run.wait(100)
    counted = {n: run.count("request_prompt_tokens_total", f"decode-{n}") for n in (0, 1)}
    assert counted == {0: 800, 1: 200}
    assert run.count("requests_total") == 10


def test_engines_named_by_their_hooks_have_the_rank_in_their_names_once() -> None:
    """The hook's own name already ends in it; one from the sidecar's settings does not."""
    run = Run()
    for n, name in enumerate(("blue_dp0", "blue_dp1")):
        engine = msgspec.structs.replace(engine_of(n), name=name)
        run.feed([Process(f"e{n}", "engine", engine).started()])
    assert [e.name for e in run.assembler.status(run.now_ns).engines] == ["blue_dp0", "blue_dp1"]
