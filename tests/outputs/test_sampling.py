"""Which turns have a trace."""

from __future__ import annotations

import hashlib

import pytest

from turnscope.model import Turn
from turnscope.outputs.sampling import REMEMBERED, Sampler

S = 1_000_000_000
LAST, FIRST = "0" * 16 + "f" * 16, "f" * 16 + "0" * 16
"""Ids that a sampler keeps last of all, and first of all."""


def turn(turn_id: str = LAST, **fields: object) -> Turn:
    return Turn(turn_id=turn_id, started_ns=0, **fields)  # type: ignore[arg-type]


def test_by_default_every_turn_is_kept() -> None:
    assert Sampler().keeps(turn(LAST))


def test_a_share_is_kept_by_the_half_of_the_id_that_opentelemetry_looks_at() -> None:
    ids = [hashlib.sha256(str(n).encode()).hexdigest()[:32] for n in range(10_000)]
    kept = {i for i in ids if Sampler(0.25).keeps(turn(i))}
    assert 2_300 < len(kept) < 2_700
    assert kept == {i for i in ids if Sampler(0.25).keeps(turn(i))}
    assert kept < {i for i in ids if Sampler(0.5).keeps(turn(i))}
    assert Sampler(0.01).keeps(turn(FIRST))
    assert not Sampler(0.99).keeps(turn(LAST))


@pytest.mark.parametrize(
    "fields",
    [
        {"suspicions": ["kv_mismatch"]},
        {"status": "error"},
        {"status": "stuck"},
        {"ttft_ns": 2 * S},
        {"prefill_ns": 2 * S},
    ],
)
def test_suspicious_failed_and_slow_turns_are_always_kept(fields: dict[str, object]) -> None:
    assert Sampler(0.0, slow_ns=2 * S).keeps(turn(**fields))


@pytest.mark.parametrize("fields", [{}, {"status": "cancelled"}, {"ttft_ns": 2 * S - 1}])
def test_others_are_not(fields: dict[str, object]) -> None:
    assert not Sampler(0.0, slow_ns=2 * S).keeps(turn(**fields))


def test_a_turn_that_becomes_suspicious_later_is_sent_then_and_once() -> None:
    sampler = Sampler(0.0)
    assert not sampler.keeps(turn())
    assert not sampler.keeps_late(turn(revision=2))
    assert sampler.keeps_late(turn(revision=3, suspicions=["stale_handle"]))
    assert not sampler.keeps_late(turn(revision=4, suspicions=["stale_handle"]))


def test_a_turn_that_was_sent_already_is_not_sent_again() -> None:
    sampler = Sampler(0.0)
    assert sampler.keeps(turn(suspicions=["kv_mismatch"]))
    assert not sampler.keeps_late(turn(suspicions=["kv_mismatch"]))
    assert not sampler.keeps_late(turn(FIRST[:-1] + "1", status="error", suspicions=["kv_mismatch"]))
    assert not Sampler(1.0).keeps_late(turn(suspicions=["kv_mismatch"]))


def test_what_is_remembered_is_bounded() -> None:
    sampler = Sampler(0.0)
    for n in range(REMEMBERED + 1):
        assert sampler.keeps_late(turn(f"{n:016x}" + "f" * 16, suspicions=["kv_mismatch"]))
    assert sampler.keeps_late(turn(f"{0:016x}" + "f" * 16, suspicions=["kv_mismatch"]))
    assert not sampler.keeps_late(turn(f"{REMEMBERED:016x}" + "f" * 16, suspicions=["kv_mismatch"]))
