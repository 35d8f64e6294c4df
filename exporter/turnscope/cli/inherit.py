"""Whose session each imported OTLP span belongs to: the rule of spans that are received, over a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from turnscope.assembly.agent_spans import COMPLETE_NS, AgentSpans
from turnscope.assembly.ledger import Ledger
from turnscope.assembly.span_state import SpansState
from turnscope.decode.imports.report import Report
from turnscope.model import AgentSpan, Revision

AT_ONCE: Final = 1_000
REMEMBERED: Final = 50_000
"""Spans in which an ancestor is looked for, and traces whose session is known, at most: as in ``turnscope serve``."""


def inherited(spans: Iterable[AgentSpan], report: Report) -> Iterator[AgentSpan]:
    """The rows of ``spans``: each when its span comes, and again when its session becomes known or another one. How
    many remain without one is noted in ``report``."""
    ledger, state = Ledger({}), SpansState()
    agents = AgentSpans(state, ledger, memory_ns=0, max_spans=REMEMBERED, max_traces=REMEMBERED)
    coming = iter(spans)
    while some := list(islice(coming, AT_ONCE)):
        agents.feed(some, 0)
        for fact in ledger.take():
            if isinstance(fact, Revision) and fact.span is not None:
                yield fact.span
    loose = state.forgotten_loose + agents.loose(COMPLETE_NS)
    if loose:
        report.notes.append(
            f"{loose:,} spans of model calls, tools and agents belong to no session, and no list shows them: nothing "
            f"names it, or what does comes more than {REMEMBERED:,} spans later"
        )
