"""How long the store takes over what a page about a period asks of it, filter by filter, without a browser."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from tests.store.rows import HOUR
from turnscope.model import Period
from turnscope.store import (
    StoreReader,
    process_queries,
    retention_queries,
    reuse_queries,
    suspicion_queries,
    tool_queries,
)
from turnscope.store.scope import Scope
from turnscope_app import steps

ROUNDS: Final = 2
LISTED: Final = 1_000
DAY: Final = 24 * HOUR


class Asked(NamedTuple):
    """What a page is narrowed to."""

    scope: Scope
    step_ns: int
    newest_ns: int
    period: Period


def seconds(url: str) -> dict[str, list[float]]:
    """By page: how long its questions take, one after the other as the page asks them, for each filter and round."""
    reader = StoreReader(url)
    try:
        every = _asked(reader)
        for questions in _PAGES.values():
            _together(reader, questions, every[1])  # Finds files and what they have several rows of, as any visit does.
        return {
            page: [_together(reader, questions, asked) for asked in every for _ in range(ROUNDS)]
            for page, questions in _PAGES.items()
        }
    finally:
        reader.close()


def _asked(reader: StoreReader) -> list[Asked]:
    """What people narrow by: nothing, a day, a week, a model, an application, and all of it."""
    _, first_ns, last_ns = reader.bounds()
    names = reader.names()
    model, application = names["models"][0], names["applications"][0]
    scopes = (
        Scope(),
        Scope(since_ns=last_ns - DAY),
        Scope(since_ns=last_ns - 7 * DAY),
        Scope(model=model),
        Scope(application=application),
        Scope(since_ns=last_ns - DAY, model=model, application=application),
    )
    return [
        Asked(
            scope,
            steps.length(scope.since_ns or first_ns, last_ns),
            last_ns,
            Period(since_ns=scope.since_ns or first_ns, until_ns=last_ns + 1, application=scope.application),
        )
        for scope in scopes
    ]


Question = Callable[[StoreReader, Asked], object]


def _together(reader: StoreReader, questions: tuple[Question, ...], asked: Asked) -> float:
    began = time.monotonic()
    for question in questions:
        question(reader, asked)
    return time.monotonic() - began


def _whole(query: Any, *names: str) -> Question:
    """A question that is answered at once; ``names``: the fields of ``Asked`` that it takes."""
    return lambda reader, asked: reader.ask(partial(query, **{name: getattr(asked, name) for name in names}))


def _paged(query: Any, **more: Any) -> Question:
    """A question of which a page is answered."""
    return lambda reader, asked: reader.page(partial(query, scope=asked.scope, **more), limit=LISTED)


_PAGES: Final[dict[str, tuple[Question, ...]]] = {
    "Home": (
        lambda reader, asked: reader.figures(asked.period),
        lambda reader, asked: reader.figures(asked.period.before()),
        lambda reader, asked: reader.course(asked.period),
        lambda reader, asked: reader.by_application(asked.period),
        lambda reader, asked: reader.telling(asked.period),
    ),
    "Reuse": (
        _whole(reuse_queries.course, "scope", "step_ns"),
        _whole(reuse_queries.avoidable, "scope"),
        _whole(reuse_queries.balance, "scope"),
        _paged(reuse_queries.worst),
    ),
    "Retention": (_whole(retention_queries.retention, "scope", "step_ns", "newest_ns"),),
    "Tools and tasks": (
        _paged(tool_queries.called),
        _paged(tool_queries.applications),
        _whole(tool_queries.course, "scope", "step_ns"),
        _paged(tool_queries.evaluated),
    ),
    "Suspicions": (_whole(suspicion_queries.counted, "scope"), _paged(suspicion_queries.listed, kind=None)),
    "About this data": (
        lambda reader, asked: reader.totals(asked.scope),
        lambda reader, asked: reader.counts(asked.scope),
        lambda reader, _: reader.page(process_queries.heard, limit=LISTED),
    ),
}
