"""Agents' spans: whose session each belongs to, in whatever order they come."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnscope.assembly import Assembler, AssemblySettings
from turnscope.assembly.agent_spans import AgentSpans
from turnscope.assembly.ledger import Ledger
from turnscope.assembly.span_state import SpansState
from turnscope.model import AgentSpan, Fact, Final

NOON = 1_700_000_000_000_000_000
HOUR = 3600 * 10**9


def span(
    number: int, parent: int | None = None, session: str | None = None, *, trace: int = 1, **more: object
) -> AgentSpan:
    """As its sender would tell it."""
    trace_id, span_id = f"{trace:032x}", f"{number:016x}"
    return AgentSpan(
        span_key=f"{trace_id}-{span_id}",
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=None if parent is None else f"{parent:016x}",
        session_id=session,
        session_source=None if session is None else "session.id",
        started_ns=NOON + number,
        **{"ended_ns": NOON + number + 10, **more},  # type: ignore[arg-type]
    )


Rows = dict[str, AgentSpan]


def newest(facts: Iterable[Fact], into: Rows | None = None) -> Rows:
    """What the store would have: of each span the newest revision."""
    rows: Rows = {} if into is None else into
    for fact in facts:
        if not isinstance(fact, Final) and fact.span is not None:
            known = rows.get(fact.span.span_key)
            assert known is None or fact.span.revision > known.revision
            rows[fact.span.span_key] = fact.span
    return rows


def after(spans: Iterable[AgentSpan]) -> dict[int, tuple[str | None, str | None, str | None]]:
    """Session, source and parent session of each span by number, each delivered by itself."""
    assembler = Assembler(AssemblySettings())
    for at, one in enumerate(spans):
        assembler.feed_spans([one], at)
    return {
        int(row.span_id, 16): (row.session_id, row.session_source, row.parent_session_id)
        for row in newest(assembler.take()).values()
    }


def test_a_span_has_its_own_session_else_its_nearest_ancestors_else_its_traces() -> None:
    told = [span(1), span(2, 1, "a"), span(3, 2), span(4, 3), span(5, 99)]
    assert after(told) == {
        1: ("a", "trace", None),
        2: ("a", "session.id", None),
        3: ("a", "parent", None),
        4: ("a", "parent", None),
        5: ("a", "trace", None),
    }


def test_a_trace_of_two_sessions_agrees_on_none_and_the_inner_one_was_started_by_the_outer() -> None:
    assert after([span(1, None, "a"), span(2, 1), span(3, 2, "b"), span(4, 3), span(5, 99)]) == {
        1: ("a", "session.id", None),
        2: ("a", "parent", None),
        3: ("b", "session.id", "a"),
        4: ("b", "parent", None),
        5: (None, None, None),
    }


def test_spans_of_other_traces_have_no_say() -> None:
    assert after([span(1, None, "a"), span(2, 1, trace=2)])[2] == (None, None, None)


def test_a_trace_of_one_span_without_a_session_stays_without() -> None:
    assert after([span(1)]) == {1: (None, None, None)}


@pytest.mark.parametrize(
    "told",
    [
        [span(1, None, "a"), span(2, 1), span(3, 2)],
        [span(1), span(2, 1, "a"), span(3, 1)],
        [span(1, None, "a"), span(2, 1, "b"), span(3, 2)],
        [span(1, 2), span(2, 3), span(3, 1)],
        [span(1, 2, "a"), span(2, 3), span(3, 1)],
        [span(1, 1, "a"), span(2, 1), span(3, 7)],
    ],
    ids=["chain", "sibling", "two sessions", "circle", "circle with a session", "its own parent"],
)
def test_all_six_orders_of_three_spans_give_the_same_rows(told: list[AgentSpan]) -> None:
    results = [after(order) for order in itertools.permutations(told)]
    assert all(result == results[0] for result in results)
    assert len(results[0]) == 3


FOREST = st.lists(
    st.tuples(
        st.integers(1, 2),
        st.one_of(st.none(), st.integers(1, 12)),
        st.sampled_from([None, None, None, "a", "b"]),
        st.integers(0, 2),
    ),
    max_size=12,
)


@given(FOREST, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_any_order_any_batches_and_any_repetition_give_the_same_rows(
    shape: list[tuple[int, int | None, str | None, int]], random: random.Random
) -> None:
    told = [span(n, parent, session, trace=trace) for n, (trace, parent, session, _) in enumerate(shape, 1)]
    # Some are told twice, the second time finished later and by another parent.
    told += [
        msgspec.structs.replace(one, ended_ns=one.started_ns + 50, parent_span_id=f"{n:016x}", session_id="a")
        for n, (one, (*_, again)) in enumerate(zip(told, shape, strict=True), 1)
        if again == 2
    ]

    def rows(order: list[AgentSpan]) -> Rows:
        assembler, at = Assembler(AssemblySettings()), 0
        while order:
            size = random.randint(1, 4)
            assembler.feed_spans(order[:size], at)
            order, at = order[size:], at + 1
        found = newest(assembler.take())
        return {key: msgspec.structs.replace(row, revision=0) for key, row in found.items()}

    first = rows(list(told))
    shuffled = told * 2
    random.shuffle(shuffled)
    assert rows(shuffled) == first


def test_a_late_parent_revises_what_was_handed_out_and_a_repetition_does_not() -> None:
    assembler = Assembler(AssemblySettings())
    assembler.feed_spans([span(2, 1)], 1)
    rows = newest(assembler.take())
    assert [row.session_id for row in rows.values()] == [None]
    assembler.feed_spans([span(1, None, "a"), span(2, 1)], 2)
    newest(assembler.take(), rows)
    assert {row.span_id[-1]: (row.session_id, row.revision) for row in rows.values()} == {"1": ("a", 1), "2": ("a", 2)}
    assembler.feed_spans([span(1, None, "a"), span(2, 1)], 3)
    assert newest(assembler.take()) == {}


def test_a_span_told_again_when_it_has_ended_replaces_what_was_told_while_it_ran() -> None:
    running, ended = span(1, ended_ns=None), span(1, output_tokens=5)
    for order in ([running, ended], [ended, running]):
        assembler = Assembler(AssemblySettings())
        for one in order:
            assembler.feed_spans([one], 1)
        (row,) = newest(assembler.take()).values()
        assert (row.ended_ns, row.output_tokens) == (NOON + 11, 5)


def test_a_restored_assembler_goes_on_where_the_first_one_was() -> None:
    whole, first = Assembler(AssemblySettings()), Assembler(AssemblySettings())
    for assembler in (whole, first):
        assembler.feed_spans([span(2, 1), span(3, 2)], 1)
    rows, again = newest(whole.take()), newest(first.take())
    second = Assembler(AssemblySettings())
    second.restore(first.snapshot())
    for assembler in (whole, second):
        assembler.feed_spans([span(1, None, "a"), span(3, 2)], 2)
    assert newest(second.take(), again) == newest(whole.take(), rows)
    assert {row.session_id for row in again.values()} == {"a"}


def test_after_an_hour_of_silence_a_trace_is_forgotten() -> None:
    assembler = Assembler(AssemblySettings())
    assembler.feed_spans([span(1, None, "a")], 1)
    assembler.feed_spans([span(2, 1)], HOUR // 2)
    rows = newest(assembler.take())
    assembler.tick(2 * HOUR)
    assembler.feed_spans([span(3, 1)], 2 * HOUR + 1)
    assert {row.span_id[-1]: row.session_id for row in newest(assembler.take(), rows).values()} == {
        "1": "a",
        "2": "a",
        "3": None,
    }


class Small:
    """Room for ten spans and three traces."""

    def __init__(self) -> None:
        self.state, self.ledger = SpansState(), Ledger({})
        self.spans = AgentSpans(self.state, self.ledger, memory_ns=HOUR, max_spans=10, max_traces=3)
        self.rows: Rows = {}
        self.forgotten = 0.0

    def feed(self, *spans: AgentSpan) -> None:
        self.spans.feed(spans, 1)
        for fact in self.ledger.take():
            if isinstance(fact, Final):
                self.forgotten += sum(c.value for c in fact.contributions)
            elif fact.span is not None:
                self.rows[fact.span.span_key] = fact.span


def test_beyond_the_limit_the_longest_silent_traces_go_and_are_counted() -> None:
    small = Small()
    for trace in range(1, 6):
        small.feed(*(span(n, trace=trace) for n in range(1, 4)))
    assert list(small.state.traces) == [f"{trace:032x}" for trace in (3, 4, 5)]
    assert (small.state.remembered, small.forgotten) == (9, 6)


def test_a_trace_larger_than_the_memory_keeps_the_session_it_agreed_on() -> None:
    small = Small()
    small.feed(span(1, None, "a"))
    for n in range(2, 40):
        small.feed(span(n))
    assert small.state.remembered <= 10
    assert {row.session_id for row in small.rows.values()} == {"a"}
    assert small.forgotten > 20


def test_a_chain_of_five_thousand_spans_that_comes_backwards_ends() -> None:
    told = [span(1, None, "a"), *(span(n, n - 1) for n in range(2, 5001))]
    assembler = Assembler(AssemblySettings())
    assembler.feed_spans(told[::-1], 1)
    assert {row.session_id for row in newest(assembler.take()).values()} == {"a"}


def evaluated(number: int, name: str, at: int = 50) -> AgentSpan:
    """What a log record tells of a span."""
    return AgentSpan(
        span_key=f"{1:032x}-{number:016x}",
        trace_id=f"{1:032x}",
        span_id=f"{number:016x}",
        classified_by="gen_ai.evaluation.result",
        started_ns=NOON + at,
        timing="unknown",
        evaluation_name=name,
    )


@pytest.mark.parametrize("own", [None, "its own"])
def test_an_evaluation_told_in_a_log_record_is_its_spans_unless_that_has_one_whatever_comes_first(
    own: str | None,
) -> None:
    told = [
        span(1, None, "s", evaluation_name=own, evaluation_score=None if own is None else 0.5),
        evaluated(1, "first"),
        evaluated(1, "last", at=90),
        span(2, 1),
    ]
    for order in itertools.permutations(told):
        assembler = Assembler(AssemblySettings())
        for at, one in enumerate(order):
            assembler.feed_spans([one], at)
        rows = newest(assembler.take())
        assert {int(row.span_id, 16): (row.evaluation_name, row.kind, row.ended_ns) for row in rows.values()} == {
            1: (own or "last", "other", NOON + 11),
            2: (None, "other", NOON + 12),
        }


def test_an_evaluation_of_a_span_that_never_came_is_no_row() -> None:
    assembler = Assembler(AssemblySettings())
    assembler.feed_spans([evaluated(1, "lonely")], 1)
    assembler.tick(2 * HOUR)
    assert newest(assembler.take()) == {}


def test_evaluations_survive_a_restart() -> None:
    first, second = Assembler(AssemblySettings()), Assembler(AssemblySettings())
    first.feed_spans([evaluated(1, "correctness")], 1)
    second.restore(first.snapshot())
    second.feed_spans([span(1)], 2)
    assert [row.evaluation_name for row in newest(second.take()).values()] == ["correctness"]


def test_spans_of_agents_that_no_session_is_known_of_are_told_once_their_trace_is_complete() -> None:
    assembler = Assembler(AssemblySettings())

    def loose(seconds: float) -> int:
        return assembler.status(int(seconds * 10**9)).spans_without_session

    assembler.feed_spans([span(2, 1, kind="tool"), span(3, 1, kind="model_call"), span(4, 1, kind="other")], 0)
    assert (loose(119), loose(120)) == (0, 2)
    assembler.feed_spans([span(2, 1, kind="tool", output_tokens=5)], 10**9)
    assert (loose(120), loose(121)) == (0, 2), "told anew and counted once"
    restored = Assembler(AssemblySettings())
    restored.restore(assembler.snapshot())
    assembler = restored
    assert loose(121) == 2
    assembler.feed_spans([span(1, session="s", kind="agent")], 2 * 10**9)
    assert loose(1000) == 0, "the one that names it came last"
