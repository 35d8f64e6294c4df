"""The counting rule: once, at a known time, and never again."""

from __future__ import annotations

import msgspec

from tests.assembly.run import Run, totals
from tests.builders import MS, D, P, Pair, Process, read, request
from turnscope.assembly import Assembler, AssemblySettings
from turnscope.catalog import METRICS, Kind
from turnscope.model import Event, Fact, Final, Heartbeat, Request
from turnscope.semconv import Direction, Leg


def conversation(pair: Pair) -> list[Event]:
    """Two turns; the second fetches. One read comes after the blocks were given up."""
    events = [*pair.start(), *pair.turn("1", prompt=1000)]
    events += pair.turn("2", at_ms=5000, prompt=1100, fetched=1100, given=pair.handle("1", 1199))
    return sorted([*events, *pair.late_notice("d1", 7000), pair.d.beat(8000, dropped=2)], key=lambda e: e.mono_ns)


def of_turns(run: Run) -> dict[tuple[str, ...], float]:
    """What the turn shard counted."""
    return {key: value for key, value in run.counters().items() if METRICS[key[0]].owner == "turn shard"}


def test_a_turn_is_counted_five_seconds_after_it_is_complete() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1")]).wait(4.9)
    assert run.count("turns_total") == 0
    assert run.wait(0.2).count("turns_total") == 1


def test_without_its_attempt_it_waits_while_a_proxy_lives_and_not_where_there_is_none() -> None:
    for proxy, after_s in ((True, 60), (False, 5)):
        pair = Pair(proxy=proxy)
        events = [e for e in pair.turn("1") if pair.proxy is None or e.emitter != pair.proxy.emitter]
        run = Run().feed([*pair.start(), *events]).wait(after_s - 0.1)
        assert run.count("turns_total") == 0
        assert run.wait(0.2).count("turns_total") == 1


def test_legs_and_reads_count_when_they_arrive() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1")]).wait(0)
    assert run.count("requests_total") == 2
    assert run.count("transfer_reads_total") == 1
    assert run.count("turns_total") == 0


def test_a_late_fact_makes_a_revision_and_counts_as_late_only() -> None:
    pair = Pair()
    events = [*pair.start(), *pair.turn("1", prompt=1000)]
    (decode,) = [e for e in events if isinstance(e.body, Request) and e.body.leg is Leg.DECODE]
    run = Run().feed([e for e in events if e is not decode]).wait(70)
    before = of_turns(run)
    assert run.turns()["p1"].has_decode is False
    run.feed([decode], at_ms=90_000).wait()
    turn = run.turns()["p1"]
    assert (turn.revision, turn.late, turn.has_decode, turn.handoff_tokens) == (2, True, True, 999)
    assert run.count("late_facts_total", "turn") == 1
    assert of_turns(run) == before


def test_facts_older_than_memory_open_nothing() -> None:
    pair = Pair()
    hour = AssemblySettings().memory_ns // MS
    old = pair.turn("old", at_ms=1000)
    run = Run().feed([*pair.start(), *pair.beats(2 * hour, 30_000)])
    run.feed(old, at_ms=2 * hour).wait(100)
    assert run.count("turns_total") == 0
    assert run.turns() == {}
    assert run.count("late_facts_total", "turn") > 0
    assert run.count("requests_total") == 2


def test_a_fragment_whose_anchor_comes_after_all_is_a_turn() -> None:
    pair = Pair(proxy=False)
    events = [*pair.start(), *pair.turn("1", prompt=1000)]
    (prefill,) = [e for e in events if isinstance(e.body, Request) and e.body.leg is Leg.PREFILL]
    run = Run().feed([e for e in events if e is not prefill]).wait(70)
    assert (run.count("turns_total"), run.count("fragments_total", "decode")) == (0, 1)
    run.feed([prefill], at_ms=90_000).wait()
    assert (run.count("turns_total"), run.turns()["p1"].has_decode) == (1, True)


def test_what_nothing_can_be_tied_to_is_a_fragment() -> None:
    pair = Pair()
    alone = [
        pair.d.say(request("d1", leg=Leg.DECODE), 100),
        pair.dw.say(read(Direction.HANDOFF, local="d1", remote=("", "")), 100),
        pair.pw.say(read(Direction.REVERSE_FETCH, local="", remote=("d", "d1")), 100),
    ]
    run = Run().feed([*pair.start(), *alone]).wait(100)
    assert run.count("fragments_total", "decode") == 1
    assert run.count("fragments_total", "transfer") == 2
    assert (run.count("turns_total"), run.count("transfer_reads_total")) == (0, 2)


def keys(facts: list[Fact]) -> list[str]:
    return [fact.key for fact in facts if isinstance(fact, Final)]


def test_after_a_crash_replay_counts_what_the_journal_does_not_have_and_rebuilds_the_rows() -> None:
    events = conversation(Pair())
    whole = Run().feed(events).wait(100)
    crashed = Run().feed(events[: len(events) // 2]).wait(0)
    again = Run()
    for key in crashed.keys:
        again.assembler.mark_counted(key, 0)
    again.feed(events).wait(100)
    assert set(keys(again.facts)) & set(crashed.keys) == set()
    assert totals(crashed.facts + again.facts) == whole.counters()
    assert again.turns().keys() == whole.turns().keys()


def test_a_counted_turn_contributes_nothing_at_replay_but_its_row_comes_again() -> None:
    events = conversation(Pair())
    whole = Run().feed(events).wait(100)
    again = Run()
    for key in whole.keys:
        again.assembler.mark_counted(key, 0)
    again.feed(events).wait(100)
    assert totals(again.facts) == {}
    assert again.turns() == whole.turns()
    assert again.holds() == whole.holds()


def test_what_a_process_told_counts_once_over_a_crash_whatever_its_id_holds() -> None:
    strange = Process("pod:7/a b", "engine", D)
    events = [strange.say(Heartbeat(last_seq=number), 10 * number) for number in range(1, 4)]
    before = Run().feed(events).wait(1)
    assert before.count("events_received_total", "heartbeat") == 3
    after = Run()
    for key in before.keys:
        after.assembler.mark_counted(key, 0)
    after.feed(events).wait(1)
    assert after.count("events_received_total", "heartbeat") == 0


def test_a_snapshot_at_any_moment_goes_on_as_if_nothing_had_happened() -> None:
    events = conversation(Pair())
    whole = Run().feed(events).wait(100)
    for cut in range(0, len(events), 3):
        run = Run().feed(events[:cut]).wait(0)
        saved = run.assembler.snapshot()
        run.assembler = Assembler(run.settings)
        run.assembler.restore(saved)
        run.feed(events[cut:]).wait(100)
        assert run.counters() == whole.counters()
        assert run.turns() == whole.turns()


def test_a_snapshot_keeps_what_was_counted_so_that_late_facts_stay_late() -> None:
    pair = Pair()
    run = Run().feed([*pair.start(), *pair.turn("1")]).wait(20)
    other = Assembler(run.settings)
    other.restore(run.assembler.snapshot())
    run.assembler = other
    late = read(Direction.HANDOFF, local="d1", remote=("p", "p1"), bytes=1)
    run.feed([pair.dw.say(late, 30_000)]).wait()
    assert run.turns()["p1"].handoff_reads == 2
    assert (run.count("turns_total"), run.count("late_facts_total", "turn")) == (1, 1)


def test_every_metric_of_assembly_is_known_to_the_catalogue_with_its_labels() -> None:
    run = Run().feed(conversation(Pair(msgspec.structs.replace(P, name="blue")))).wait(100)
    for metric, *labels in run.counters():
        assert len(labels) == len(METRICS[metric].labels)
        assert METRICS[metric].kind in (Kind.COUNTER, Kind.HISTOGRAM)
    for sample in run.assembler.samples(run.now_ns):
        assert len(sample.labels) == len(METRICS[sample.metric].labels)
        assert METRICS[sample.metric].kind in (Kind.GAUGE, Kind.INFO)


def test_the_catalogue_has_names_that_prometheus_likes() -> None:
    for metric in METRICS.values():
        assert metric.name.endswith("_total") is (metric.kind is Kind.COUNTER)
        assert metric.name.endswith("_info") is (metric.kind is Kind.INFO)
        assert bool(metric.buckets) is (metric.kind is Kind.HISTOGRAM)
        assert "vllm" not in metric.name
        assert metric.help.endswith(".")
