"""The table of reasons, asked about everything that evidence can say."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from tests.assembly.possible import possible
from turnscope.assembly.knowledge import (
    Ending,
    Evidence,
    Given,
    Left,
    Load,
    Missing,
    Offer,
    Previous,
    Progress,
    Session,
    Spent,
    parts,
)
from turnscope.assembly.reasons import TABLE, Row, reason
from turnscope.catalog import legal
from turnscope.semconv import Path, Reason


# --- everything that evidence can say, derived from its types -----------------------------------------
def values(hint: Any) -> list[Any]:
    """All values of one type: of booleans and enums each, of None one, of a struct every combination of its fields."""
    if get_origin(hint) is UnionType:
        return [value for part in get_args(hint) for value in values(part)]
    if hint is type(None):
        return [None]
    if hint is bool:
        return [False, True]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)
    assert issubclass(hint, msgspec.Struct), f"evidence holds a {hint}, whose values cannot be listed"
    hints = get_type_hints(hint)
    names = [field.name for field in msgspec.structs.fields(hint)]
    return [
        hint(**dict(zip(names, each, strict=True))) for each in itertools.product(*(values(hints[n]) for n in names))
    ]


@cache
def everything() -> list[Evidence]:
    return values(Evidence)


def first(evidence: Evidence) -> Row:
    known = parts(evidence)
    return next(row for row in TABLE if row.matches(known))


@cache
def decided() -> dict[int, list[Evidence]]:
    """Row to the possible evidence that it decides: of what matches it, what no row before it does."""
    out: dict[int, list[Evidence]] = {number: [] for number in range(len(TABLE))}
    numbers = {id(row): number for number, row in enumerate(TABLE)}
    for evidence in filter(possible, everything()):
        out[numbers[id(first(evidence))]].append(evidence)
    return out


# --- the table as a whole -----------------------------------------------------------------------------
def test_whatever_evidence_says_there_is_exactly_one_reason() -> None:
    assert len(everything()) > 100_000
    assert {type(reason(evidence)) for evidence in everything()} == {Reason}


def test_unknown_is_the_only_row_that_asks_nothing_and_it_stands_last() -> None:
    assert [row.reason for row in TABLE if not row.asks and row.of is Evidence] == [Reason.UNKNOWN]
    assert TABLE[-1].reason is Reason.UNKNOWN
    assert [row.reason for row in TABLE[:-1] if row.reason is Reason.UNKNOWN] == []


def test_no_row_is_dead_or_covered_by_those_before_it() -> None:
    assert [TABLE[number].says for number, evidence in decided().items() if not evidence] == []


def test_every_reason_of_the_vocabulary_can_come_out() -> None:
    assert {TABLE[number].reason for number, evidence in decided().items() if evidence} == set(Reason)


def test_a_row_asks_only_for_what_its_part_of_the_evidence_can_say() -> None:
    for row in TABLE:
        hints = get_type_hints(row.of)
        for field, asked in row.asks.items():
            assert set(asked) <= set(values(hints[field])), f"{row.says} asks {field} for {asked}"


def paths(evidence: Evidence) -> Iterator[Path]:
    """The paths that a turn with this evidence can have."""
    if evidence.fetched is None:
        yield Path.UNKNOWN
    elif evidence.fetched:
        yield from (Path.REVERSE_FETCH, Path.MIXED)
    elif isinstance(evidence.handle, Given) and evidence.handle.offer is Offer.COVERED:
        yield Path.LOCAL_HIT
    else:
        yield from (Path.RECOMPUTE, Path.LOCAL_HIT, Path.EXTERNAL_HIT)


def test_every_reason_is_legal_with_every_path_that_the_turn_can_have() -> None:
    wrong = {
        (path, TABLE[number].reason)
        for number, evidence in decided().items()
        for e in evidence
        for path in paths(e)
        if not legal(path, TABLE[number].reason)
    }
    assert wrong == set()


def test_unknown_is_left_where_a_word_is_missing_and_nowhere_else() -> None:
    """Of turns that two hooks told of whole: what both know decides, unless history goes back before the sidecar."""
    for evidence in decided()[len(TABLE) - 1]:
        handle = evidence.handle
        assert not isinstance(handle, Spent)
        if isinstance(handle, Given):
            assert handle.offer is None
            assert not handle.cut_short
        elif handle.previous is None:
            assert handle.session in (None, Session.CHAINED) or handle.history is True
        else:
            assert handle.previous.left in (Left.MADE, None) or handle.previous.ending in (None, Ending.UNCLEAR)


# --- its lines, one by one ----------------------------------------------------------------------------
def before(**fields: Any) -> Evidence:
    """A turn without a handle whose previous turn ended well."""
    previous = Previous(**{"ending": Ending.OK, "feature_on": True, "left": Left.SEEN, **fields})
    return Evidence(fetched=False, handle=Missing(session=Session.NAMED, previous=previous))


def given(fetched: bool | None = False, **fields: Any) -> Evidence:
    """A turn whose P was given a handle and has the feature on."""
    return Evidence(fetched=fetched, handle=Given(**{"feature_on": True, **fields}))


def missing(**fields: Any) -> Evidence:
    return Evidence(fetched=False, handle=Missing(**fields))


CASES: list[tuple[Reason, Evidence]] = [
    (Reason.NONE, given(True, offer=Offer.WORTH)),
    (Reason.REJECTED_BY_FRONTEND, Evidence(progress=Progress.REJECTED)),
    (Reason.FEATURE_OFF_PREFILL, Evidence(progress=Progress.STUCK, handle=Given(feature_on=False))),
    (Reason.STUCK, Evidence(progress=Progress.STUCK, handle=Given(feature_on=True))),
    (Reason.STUCK, Evidence(progress=Progress.STUCK)),
    (Reason.DECLINED_EXPIRED, given(None, load=Load.DECLINED, holder_lost=True)),
    (Reason.HANDSHAKE_FAILED, given(load=Load.HANDSHAKE_FAILED, holder_lost=True)),
    (Reason.HOLDER_LOST, given(load=Load.FAILED, holder_lost=True)),
    (Reason.TRANSFER_FAILED, given(load=Load.FAILED, offer=Offer.WORTH)),
    (Reason.EMPTY_HANDOFF_AFTER_PREEMPTION, Evidence(fetched=False, empty_handoff=True)),
    (Reason.LOCAL_HIT_COVERS, given(offer=Offer.COVERED, holder_lost=True)),
    (Reason.BELOW_THRESHOLD, given(offer=Offer.BELOW)),
    (Reason.HOLDER_LOST, given(holder_lost=True, offer=Offer.WORTH)),
    (Reason.OTHER, given(None, cut_short=True)),
    (Reason.OTHER, given(offer=Offer.WORTH)),
    (Reason.OTHER, given(offer=Offer.NOTHING)),
    (Reason.UNKNOWN, given(None)),
    (Reason.HANDLE_CONSUMED_BY_RETRY, Evidence(fetched=False, handle=Spent())),
    (Reason.NO_SESSION_ID, missing(session=Session.ABSENT, history=False)),
    (Reason.FIRST_TURN, missing(session=Session.NAMED)),
    (Reason.FIRST_TURN, missing(session=Session.CHAINED, history=False)),
    (Reason.UNKNOWN, missing(session=Session.CHAINED)),
    (Reason.UNKNOWN, missing(session=Session.NAMED, history=True)),
    (Reason.UNKNOWN, missing()),
    (Reason.STOPPED_BY_STRING, before(ending=Ending.STOP_STRING, left=Left.NOTHING)),
    (Reason.PREVIOUS_TURN_ABORTED, before(ending=Ending.ABORTED, left=Left.NOTHING)),
    (Reason.PREVIOUS_TURN_ABORTED, before(ending=Ending.ERROR)),
    (Reason.FEATURE_OFF_DECODE, before(feature_on=False, left=Left.NOTHING)),
    (Reason.NO_HANDLE_FROM_DECODE, before(left=Left.NOTHING)),
    (Reason.UNKNOWN, before(ending=Ending.UNCLEAR, left=Left.NOTHING)),
    (Reason.HANDLE_TAKEN_BY_SIBLING, before(taken=True, entry_expired=True)),
    (Reason.PROXY_ENTRY_EXPIRED, before(entry_expired=True, holder_lost=True)),
    (Reason.UNKNOWN, before(left=Left.MADE, entry_expired=True)),
    (Reason.HOLDER_LOST, before(left=Left.MADE, holder_lost=True)),
    (Reason.PREFIX_DIVERGED, before(diverged=True)),
    (Reason.HANDLE_NOT_GIVEN, before()),
    (Reason.UNKNOWN, before(left=Left.MADE)),
]


@pytest.mark.parametrize(("expected", "evidence"), CASES)
def test_evidence_has_its_reason(expected: Reason, evidence: Evidence) -> None:
    assert possible(evidence)
    assert reason(evidence) is expected


def test_every_row_is_shown_by_some_case() -> None:
    shown = {id(first(evidence)) for _, evidence in CASES}
    assert [row.says for row in TABLE if id(row) not in shown] == []
