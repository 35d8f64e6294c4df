"""The whole chain on a real vLLM pair: ``make live`` as a test. Takes several minutes."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from pathlib import Path

import pytest

from live import agent_verdict, router_setup, savings, trials
from live.conversations import Tells, conversations
from live.fronts import PROXY_SCRIPT, Front
from live.plans import PLANS, SEEDS
from live.result import Result
from live.run import run
from live.trials import APART, TOGETHER, TRIALS
from live.unknown import ALLOWED
from turnscope.measures import reconcile
from turnscope.semconv import Transport
from turnscope.store import StoreReader

pytestmark = [pytest.mark.live, pytest.mark.timeout(2400)]

# On an idle machine every reason of a special conversation is shown; a busy one may be too slow for D's hold.
SPECIAL = {
    "none",
    "first_turn",
    "no_session_id",
    "no_handle_from_decode",
    "below_threshold",
    "declined_expired",
    "handle_not_given",
    "previous_turn_aborted",
    "holder_lost",
    "stuck",
}
RESTARTS = 1
PLAIN = ("uncached", "cached")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """One run of all plans."""
    return run(PLANS, folder=tmp_path_factory.mktemp("live"))


def test_every_count_equals_the_engines_own(result: Result) -> None:
    assert len(result.engines) == 2 * len(PLANS)
    assert len(result.rows) == len(result.engines) * len(reconcile.QUANTITIES)
    assert reconcile.differences(result.rows) == [], reconcile.table(result.rows)


def test_what_was_compared_happened(result: Result) -> None:
    for plan in PLANS:
        if plan.config.name not in PLAIN:
            continue
        counters = result.engines[f"prefill-{plan.config.ordinal}"]
        assert counters["prompt tokens, external_kv_transfer"] > 0
        assert counters["transfers"] > 0
        assert (counters["prompt tokens, local_cache_hit"] > 0) == plan.config.prefix_caching
        assert result.engines[f"decode-{plan.config.ordinal}"]["expiries"] > 0


def test_every_conversation_has_all_its_turns(result: Result) -> None:
    done = [c for group in conversations() for c in group]
    assert len(done) >= 8
    for name in PLAIN:
        names = {c.name for c in done}
        turns = [t for t in result.truth if t.configuration == name and t.conversation in names]
        assert len(turns) == sum(c.turns for c in done)


def test_every_turn_is_stored_as_it_was_done(result: Result) -> None:
    assert result.verdict.problems == []


def test_every_kind_of_proxy_was_in_front_of_the_pair(result: Result) -> None:
    turns = Counter(turn.front for turn in result.truth)
    assert turns.keys() == set(Front)
    assert min(turns.values()) >= 10
    assert {turn.tells for turn in result.truth if turn.front is not Front.HOOKED} == set(Tells)


def test_with_both_hooks_hardly_a_reason_is_unknown_even_after_random_interruptions(result: Result) -> None:
    """By our own metric and by the store; each configuration for itself is judged with the turns."""
    assert {name: share.turns for name, share in result.unknown.items()} == {
        name: share.turns for name, share in result.stored_unknown.items()
    }
    drawn = [turn for turn in result.truth if turn.conversation.startswith("random-")]
    assert len({turn.act for turn in drawn}) >= 4
    assert result.unknown["troubled"].turns >= len(drawn) >= 25
    assert result.unknown["troubled"].unknown < ALLOWED * result.unknown["troubled"].turns


def test_what_cards_count_while_the_pair_moves_kv_says_what_carried_it(result: Result) -> None:
    assert [done.trial for done in result.trials] == list(TRIALS)
    assert list(trials.judge(result.trials, result.views)) == []
    assert all(done.windows.keys() == result.views.keys() == {TOGETHER, APART} for done in result.trials)


def test_where_a_scripted_agents_time_went_is_told_as_it_timed_itself(result: Result) -> None:
    """By its spans each part, and by the proxy alone within the bounds that are stated."""
    assert [session.seed for session in result.scripted] == list(SEEDS)
    assert list(agent_verdict.judge(result.scripted, result.known)) == []


def test_what_reuse_spares_lies_within_what_was_predicted_without_it_nine_times_in_ten(result: Result) -> None:
    assert len(result.saved) == savings.TRIALS
    assert savings.judge(result.saved) == [], savings.table(result.saved)


def test_the_loopback_itself_never_says_efa(result: Result) -> None:
    assert result.over_efa == 0
    with contextlib.closing(StoreReader(str(result.store))) as reader:
        said = {row["transport"] for row in reader.recent_turns(limit=10_000).table.to_pylist()}
    assert len(said) > 1
    assert Transport.EFA not in said


def test_every_panel_of_the_overview_shows_what_was_done(result: Result) -> None:
    """In a real Prometheus that scraped sidecar and engines, all together and for each prefill engine."""
    assert len(result.moments) == sum(len(plan.phases) for plan in PLANS)
    assert result.shown_wrongly == []


def test_what_runbooks_say_that_stops_the_harm_lets_the_alert_end(result: Result) -> None:
    tried = {alert for each in result.calmed for alert in each.alerts}
    assert tried == {
        "TurnscopeKvMismatch",
        "TurnscopeReadAfterRelease",
        "TurnscopeHandleReused",
        "TurnscopeReadsDeclined",
        "TurnscopeTurnsStuck",
    }
    assert result.not_calmed == []


def test_every_special_conversation_shows_its_reason(result: Result) -> None:
    missing = SPECIAL - result.verdict.shown
    assert not missing, f"never shown: {missing}; {result.verdict.too_slow} turns came too late to be judged"


def test_nothing_of_what_clients_wrote_has_left_the_serving_processes(result: Result) -> None:
    assert len(result.needles) > 1
    assert any("events.jsonl" in path.name for path in result.folder.iterdir())
    assert (result.folder / "traces.jsonl").stat().st_size > 0
    assert result.leaks == []


def test_nothing_is_left_running(result: Result) -> None:
    assert len(result.groups) == 2 * len(PLANS) + RESTARTS
    for group in result.groups:
        with pytest.raises(ProcessLookupError):
            os.killpg(group, 0)
    commands = [_command(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    started = (str(result.folder), f"{PROXY_SCRIPT} --port", f"{router_setup.command()} --host")
    assert [command for command in commands if any(part in command for part in started)] == []


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
