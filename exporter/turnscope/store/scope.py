"""Which rows a question is about: those of a period, a model and an application."""

from __future__ import annotations

from typing import Final

import msgspec

from turnscope.semconv import SpanKind
from turnscope.store.queries import Params, Sources
from turnscope.store.schema import HOLDS, SESSIONS, SPANS, TURNS
from turnscope.store.sql import newest


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Turns, holds and spans that began in the period, and sessions that ended in it. None: whichever."""

    since_ns: int | None = None
    until_ns: int | None = None
    """No part of it."""
    model: str | None = None
    application: str | None = None
    """By its whole name, version included. Turns and holds are of all applications of their session."""


APPLICATION: Final = "CASE WHEN service_version != '' THEN service_name || ' ' || service_version ELSE service_name END"
"""Of a span, as sessions' summaries name it."""
TOOLS: Final = f"kind IN ('{SpanKind.TOOL}', '{SpanKind.RETRIEVAL}')"


def turns(src: Sources, scope: Scope, columns: str) -> tuple[str, Params]:
    """The newest revisions of its turns; ``columns`` are what is wanted of them."""
    tests, params = _period(scope, "started_ns")
    if scope.model is not None:
        tests.append("model = $model")
        params["model"] = scope.model
    if scope.application is not None:
        tests.append(_of_application(src))
        params["application"] = scope.application
    needs = "*" if columns == "*" else _with(columns, "turn_id", "session_id", "started_ns", "model")
    return f"(SELECT {columns} FROM {newest(TURNS, src.turns, needs)}{_where(tests)})", params


def holds(src: Sources, scope: Scope, columns: str) -> tuple[str, Params]:
    """The newest revisions of the holds and leases that it is about."""
    tests, params = _period(scope, "started_ns")
    if scope.model is not None:
        of_model = newest(TURNS, src.turns, "turn_id, model")
        tests.append(f"turn_id IN (SELECT turn_id FROM {of_model} WHERE model = $model)")
        params["model"] = scope.model
    if scope.application is not None:
        tests.append(_of_application(src))
        params["application"] = scope.application
    needs = _with(columns, "hold_id", "turn_id", "session_id", "started_ns")
    return f"(SELECT {columns} FROM {newest(HOLDS, src.holds, needs)}{_where(tests)})", params


def tools(src: Sources, scope: Scope, columns: str) -> tuple[str, Params]:
    """The newest revisions of its spans of tools and retrievals."""
    tests, params = _period(scope, "started_ns")
    tests.append(TOOLS)
    if scope.model is not None:
        found = newest(SESSIONS, src.sessions, "session_id, models")
        tests.append(f"session_id IN (SELECT session_id FROM {found} WHERE list_contains(models, $model))")
        params["model"] = scope.model
    if scope.application is not None:
        tests.append(f"{APPLICATION} = $application")
        params["application"] = scope.application
    return f"(SELECT {columns} FROM {newest(SPANS, src.spans)}{_where(tests)})", params


def sessions(src: Sources, scope: Scope, columns: str) -> tuple[str, Params]:
    """The newest summaries of its sessions."""
    tests, params = _period(scope, "ended_ns")
    tests.append("turns + spans > 0")
    if scope.model is not None:
        tests.append("list_contains(models, $model)")
        params["model"] = scope.model
    if scope.application is not None:
        tests.append("list_contains(applications, $application)")
        params["application"] = scope.application
    return f"(SELECT {columns} FROM {newest(SESSIONS, src.sessions)}{_where(tests)})", params


def _period(scope: Scope, at: str) -> tuple[list[str], Params]:
    tests: list[str] = []
    params: Params = {}
    if scope.since_ns is not None:
        tests.append(f"{at} >= $since_ns")
        params["since_ns"] = scope.since_ns
    if scope.until_ns is not None:
        tests.append(f"{at} < $until_ns")
        params["until_ns"] = scope.until_ns
    return tests, params


def _of_application(src: Sources) -> str:
    found = newest(SESSIONS, src.sessions, "session_id, applications")
    return f"session_id IN (SELECT session_id FROM {found} WHERE list_contains(applications, $application))"


def keys_of_application(src: Sources) -> str:
    """The sessions of the application ``$application``, as ``fates.key`` of their ids."""
    found = newest(SESSIONS, src.sessions, "session_id, applications")
    return f"(SELECT hash(session_id) FROM {found} WHERE list_contains(applications, $application))"


def _where(tests: list[str]) -> str:
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def _with(columns: str, *more: str) -> str:
    wanted = columns.replace(" ", "").replace("\n", "").split(",")
    return ", ".join([*wanted, *(name for name in more if name not in wanted)])
