"""The table of reasons: one line of evidence, one reason."""

from __future__ import annotations

from typing import Any

import pytest

from turnscope.assembly.reasons import TABLE, Evidence, reason
from turnscope.semconv import Path, Reason

IN_SESSION: dict[str, Any] = {"path": Path.RECOMPUTE, "session": True, "previous": True, "previous_ending": "ok"}
WITH_HANDLE: dict[str, Any] = {"path": Path.RECOMPUTE, "handle_at_prefill": True, "feature_on_prefill": True}

CASES: list[tuple[Reason, dict[str, Any]]] = [
    (Reason.NONE, {"path": Path.REVERSE_FETCH, "handle_at_prefill": True}),
    (Reason.NONE, {"path": Path.MIXED, "handle_at_prefill": True}),
    (Reason.REJECTED_BY_FRONTEND, {"rejected": True, "session": True}),
    (Reason.FEATURE_OFF_PREFILL, {"handle_at_prefill": True, "feature_on_prefill": False, "stuck": True}),
    (Reason.STUCK, {"handle_at_prefill": True, "feature_on_prefill": True, "stuck": True}),
    (Reason.DECLINED_EXPIRED, {**WITH_HANDLE, "declined": True, "load_failed": True}),
    (Reason.HANDSHAKE_FAILED, {**WITH_HANDLE, "handshake_failed": True, "load_failed": True, "holder_lost": True}),
    (Reason.HOLDER_LOST, {**WITH_HANDLE, "load_failed": True, "holder_lost": True}),
    (Reason.TRANSFER_FAILED, {**WITH_HANDLE, "load_failed": True}),
    (Reason.EMPTY_HANDOFF_AFTER_PREEMPTION, {**IN_SESSION, "empty_handoff": True}),
    (
        Reason.LOCAL_HIT_COVERS,
        {**WITH_HANDLE, "path": Path.LOCAL_HIT, "local_tokens": 9, "remainder_tokens": 0, "threshold_tokens": 64},
    ),
    (Reason.BELOW_THRESHOLD, {**WITH_HANDLE, "remainder_tokens": 63, "threshold_tokens": 64}),
    (Reason.OTHER, {**WITH_HANDLE, "remainder_tokens": 64, "threshold_tokens": 64}),
    (Reason.HOLDER_LOST, {**WITH_HANDLE, "holder_lost": True}),
    (Reason.UNKNOWN, {**WITH_HANDLE, "path": Path.UNKNOWN}),
    (Reason.HANDLE_CONSUMED_BY_RETRY, {**IN_SESSION, "spent_by_attempt": True}),
    (Reason.NO_SESSION_ID, {"path": Path.RECOMPUTE, "session": False}),
    (Reason.FIRST_TURN, {"path": Path.RECOMPUTE, "session": True}),
    (Reason.UNKNOWN, {"path": Path.RECOMPUTE, "session": True, "history": True}),
    (Reason.UNKNOWN, {"path": Path.RECOMPUTE, "session": None}),
    (Reason.STOPPED_BY_STRING, {**IN_SESSION, "previous_ending": "stop_string"}),
    (Reason.PREVIOUS_TURN_ABORTED, {**IN_SESSION, "previous_ending": "aborted"}),
    (Reason.PREVIOUS_TURN_ABORTED, {**IN_SESSION, "previous_ending": "error"}),
    (Reason.PREFIX_DIVERGED, {**IN_SESSION, "handle_left": False, "diverged": True}),
    (Reason.FEATURE_OFF_DECODE, {**IN_SESSION, "feature_on_decode": False, "handle_left": False}),
    (Reason.NO_HANDLE_FROM_DECODE, {**IN_SESSION, "feature_on_decode": True, "handle_left": False}),
    (Reason.HANDLE_TAKEN_BY_SIBLING, {**IN_SESSION, "handle_left": True, "taken_by_sibling": True}),
    (Reason.PROXY_ENTRY_EXPIRED, {**IN_SESSION, "handle_left": True, "entry_expired": True}),
    (Reason.HOLDER_LOST, {**IN_SESSION, "handle_left": True, "holder_lost": True}),
    (Reason.HANDLE_NOT_GIVEN, {**IN_SESSION, "handle_left": True}),
    (Reason.UNKNOWN, IN_SESSION),
    (Reason.UNKNOWN, {}),
]


@pytest.mark.parametrize(("expected", "evidence"), CASES)
def test_evidence_has_its_reason(expected: Reason, evidence: dict[str, Any]) -> None:
    assert reason(Evidence(**evidence)) is expected


def test_every_row_of_the_table_is_the_first_match_of_some_case() -> None:
    first = {next((n for n, row in enumerate(TABLE) if row.when(Evidence(**e))), None) for _, e in CASES}
    assert [row.reason for n, row in enumerate(TABLE) if n not in first] == []


def test_every_reason_has_a_row() -> None:
    assert {row.reason for row in TABLE} == set(Reason)
