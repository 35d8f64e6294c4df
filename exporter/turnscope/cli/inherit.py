"""Whose session each imported OTLP span belongs to: the rule of spans that are received, over a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from turnscope.assembly.agent_spans import AgentSpans
from turnscope.assembly.ledger import Ledger
from turnscope.assembly.span_state import SpansState
from turnscope.model import AgentSpan, Revision

AT_ONCE: Final = 1_000
REMEMBERED: Final = 20_000
"""Spans in which an ancestor is looked for, and traces whose session is known."""


def inherited(spans: Iterable[AgentSpan]) -> Iterator[AgentSpan]:
    """The rows of ``spans``: each when its span comes, and again when its session becomes known or another one."""
    ledger = Ledger({})
    agents = AgentSpans(SpansState(), ledger, memory_ns=0, max_spans=REMEMBERED, max_traces=REMEMBERED)
    coming = iter(spans)
    while some := list(islice(coming, AT_ONCE)):
        agents.feed(some, 0)
        for fact in ledger.take():
            if isinstance(fact, Revision) and fact.span is not None:
                yield fact.span
