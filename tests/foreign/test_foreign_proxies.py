"""Turns behind proxies without a hook: what engines alone can tell comes out, and nothing else is made up."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from live import router_setup
from tests.assembly.run import Run
from tests.foreign.engines import OUTPUT, HookedEngine, pair
from tests.proxy.conftest import SCRIPT, process
from tests.proxy.stubs import free_port
from turnscope.model import Turn

TRACEPARENT = f"00-{'a' * 32}-{'b' * 16}-01"


class Foreign:
    """A proxy in front of hooked engines."""

    def __init__(self, url: str, prefill: HookedEngine, decode: HookedEngine) -> None:
        self.prefill = prefill
        self.decode = decode
        self.client = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def ask(self, turn: int, *, headers: dict[str, str] | None = None, **body: Any) -> None:
        """The ``turn``-th request of a conversation: 1,000 characters of system prompt, 100 and an answer a turn."""
        messages = [{"role": "system", "content": "s" * 1000}]
        for _ in range(turn - 1):
            messages += [{"role": "user", "content": "u" * 100}, {"role": "assistant", "content": "x" * OUTPUT}]
        messages.append({"role": "user", "content": "u" * 100})
        asked = {"traceparent": TRACEPARENT, **(headers or {})}
        answer = self.client.post(
            "/v1/chat/completions", json={"model": "m", "messages": messages, **body}, headers=asked
        )
        assert answer.status_code == 200, answer.text

    def run(self) -> Run:
        """All that the engines' hooks have said, assembled."""
        return Run().feed([*self.prefill.events(), *self.decode.events()]).wait(100)


@contextlib.contextmanager
def behind(command: list[str | Path]) -> Iterator[Foreign]:
    """``command`` with its port and the engines\' addresses in place of ``PORT``, ``PREFILL`` and ``DECODE``."""
    port = free_port()
    with pair() as (prefill, decode):
        places = {"PORT": str(port), "METRICS": str(free_port()), "PREFILL": prefill.url, "DECODE": decode.url}
        line = [places.get(str(part), str(part)) for part in command]
        with process(line, {}, f"http://127.0.0.1:{port}"):
            foreign = Foreign(f"http://127.0.0.1:{port}", prefill, decode)
            with foreign.client:
                yield foreign


@pytest.fixture(scope="module")
def router_process() -> Iterator[Foreign]:
    """vllm-router. Fails the test by name when it is not installed."""
    if not router_setup.complete():
        pytest.fail("vllm-router is missing: run python live/router_setup.py, or make test")
    here = ["--host", "127.0.0.1", "--port", "PORT", "--prometheus-host", "127.0.0.1", "--prometheus-port", "METRICS"]
    split = ["--vllm-pd-disaggregation", "--prefill", "PREFILL", "--decode", "DECODE", "--kv-connector", "nixl"]
    with behind([router_setup.command(), *here, *split, "--policy", "round_robin"]) as running:
        yield running


@pytest.fixture
def router(router_process: Foreign) -> Foreign:
    """The router, its engines' hooks having said nothing yet but that they are there."""
    router_process.prefill.events()
    router_process.decode.events()
    router_process.prefill.headers.clear()
    return router_process


@pytest.fixture
def stateful() -> Iterator[Foreign]:
    """A proxy that keeps D's handles by ``conversation_id``, started as it is."""
    with behind([sys.executable, SCRIPT, "--port", "PORT", "--prefill", "PREFILL", "--decode", "DECODE"]) as running:
        yield running


def by_start(run: Run) -> list[Turn]:
    return sorted(run.turns().values(), key=lambda turn: turn.started_ns)


def test_the_routers_two_legs_are_one_turn_by_the_ids_that_engines_exchange(router: Foreign) -> None:
    router.ask(1, headers={"x-request-id": "mine", "x-session-id": "s1"})
    (turn,) = by_start(router.run())
    assert (turn.join, turn.has_prefill, turn.has_decode, turn.has_attempt) == ("exact", True, True, False)
    assert (turn.path, turn.prompt_tokens, turn.computed_tokens, turn.handoff_tokens) == ("recompute", 1100, 1100, 1099)
    assert (turn.output_tokens, turn.handoff_bytes, turn.status) == (OUTPUT, 786_432, "ok")
    assert "mine" not in (turn.prefill_request_id or ""), "the router gives ids of its own"


def test_what_only_a_proxy_knows_is_unknown_behind_the_router(router: Foreign) -> None:
    router.ask(1, headers={"x-session-id": "s1"})
    router.ask(2, headers={"x-session-id": "s1"})
    (seen, *_) = router.prefill.headers
    assert "x-session-id" not in seen
    assert seen["traceparent"] == TRACEPARENT
    for turn in by_start(router.run()):
        assert (turn.session_id, turn.turn_index, turn.previous_turn_id, turn.reason) == (None, None, None, "unknown")
        assert (turn.ttft_ns, turn.duration_ns, turn.streamed, turn.tool_calls) == (None, None, None, None)
        assert turn.suspicions == []


def test_a_session_id_in_the_body_passes_the_router_and_makes_the_session(router: Foreign) -> None:
    for number in (1, 2, 3):
        router.ask(number, session_id="s-body")
    run = router.run()
    turns = by_start(run)
    assert [turn.session_id for turn in turns] == ["s-body"] * 3
    assert [(turn.turn_index, turn.session_source) for turn in turns] == [(n, "engine") for n in (1, 2, 3)]
    assert [turn.previous_turn_id for turn in turns[1:]] == [turn.turn_id for turn in turns[:2]]
    assert [turn.path for turn in turns] == ["recompute"] * 3, "it overwrites every handle"
    assert [turn.reason for turn in turns] == ["first_turn", "unknown", "unknown"], "and nobody can say why"
    assert run.count("turns_explained_total", "engines", "no") == 2


def test_ten_requests_at_once_with_the_same_id_are_ten_turns(router: Foreign) -> None:
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda _: router.ask(1, headers={"x-request-id": "1"}), range(10)))
    turns = by_start(router.run())
    assert len(turns) == 10
    assert {(turn.join, turn.has_prefill, turn.has_decode) for turn in turns} == {("exact", True, True)}


def test_behind_a_stateful_proxy_turns_are_chained_by_the_handles_that_d_gave(stateful: Foreign) -> None:
    for number in (1, 2, 3):
        stateful.ask(number, conversation_id="c")
    run = stateful.run()
    turns = by_start(run)
    assert [turn.path for turn in turns] == ["recompute", "reverse_fetch", "reverse_fetch"]
    assert [turn.reason for turn in turns] == ["unknown", "none", "none"], "what came before the first nobody tells"
    assert len({turn.session_id for turn in turns} - {None}) == 1
    assert [(turn.session_source, turn.turn_index) for turn in turns] == [("chained", n) for n in (1, 2, 3)]
    assert [turn.fetched_tokens for turn in turns] == [0, 1119, 1239]
    steps = run.holds()[turns[0].decode_request_id or ""].steps if run.holds() else []
    assert steps == [], "the hold is not over: nobody released it"
    assert run.count("suspicions_total") == 0


def test_a_session_id_that_the_proxy_passes_on_wins_over_the_chain(stateful: Foreign) -> None:
    for number in (1, 2):
        stateful.ask(number, conversation_id="c", headers={"x-keep-x-session-id": "mine"})
    turns = by_start(stateful.run())
    assert [(turn.session_id, turn.session_source) for turn in turns] == [("mine", "engine")] * 2
    assert [turn.reason for turn in turns] == ["first_turn", "none"]


def test_streamed_answers_carry_no_handle_and_engines_alone_cannot_tell_whose_fault_it_is(stateful: Foreign) -> None:
    for number in (1, 2):
        stateful.ask(number, conversation_id="c", stream=True, headers={"x-keep-x-session-id": "mine"})
    turns = by_start(stateful.run())
    assert [turn.path for turn in turns] == ["recompute", "recompute"]
    assert [turn.reason for turn in turns] == ["first_turn", "unknown"]


def test_setting_the_router_up_again_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_setup, "FOLDER", tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "vllm-router").touch()
    assert not router_setup.complete()
    (tmp_path / "installed").write_text(router_setup.ROUTER)
    router_setup.set_up()
    assert list((tmp_path / "bin").iterdir()) == [tmp_path / "bin" / "vllm-router"]
