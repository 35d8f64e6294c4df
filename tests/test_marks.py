"""Two digests tell how far their tokens agree, and what of one was seen in the other at another place."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnscope import marks
from turnscope.marks import Keys, Marker, Media, Shared
from turnscope.model import Digest
from turnscope.semconv import Leg

KEYS = Keys(b"secret")
VOCABULARY = 150_000


def text(size: int, salt: int = 0) -> list[int]:
    """Tokens as a language has them: few are frequent, most are rare."""
    rng = random.Random(salt)
    return [int(rng.paretovariate(0.7) * 20) % VOCABULARY for _ in range(size)]


def digest(ids: list[int], **changes: Any) -> Digest:
    fields = {"request_id": "r", "leg": Leg.PREFILL, "input_tokens": len(ids), "keys": KEYS, **changes}
    return marks.digest(ids, fields.pop("keys"), **fields)


def held(ids: list[int], **changes: Any) -> Digest:
    """What D sends: its anchor is what it holds."""
    return digest(ids, leg=Leg.DECODE, anchor_tokens=len(ids), **changes)


# --- positions ----------------------------------------------------------------------------------------
def test_marks_are_fine_before_the_end_and_the_anchor_and_stand_at_both() -> None:
    places = marks.positions(3000, 1599)
    assert places == [*range(1088, 1599, 16), 1599, *range(2496, 3000, 16), 3000]


def test_an_anchor_beyond_what_exists_is_taken_as_the_end() -> None:
    assert marks.positions(1000, 1599) == marks.positions(1000, 1000) == marks.positions(1000, None)


@settings(deadline=None)
@given(tokens=st.integers(0, 5000), anchor=st.none() | st.integers(0, 6000))
def test_positions_ascend_within_the_tokens_and_end_at_their_end(tokens: int, anchor: int | None) -> None:
    places = marks.positions(tokens, anchor)
    assert places == sorted(set(places))
    assert all(0 < p <= tokens for p in places)
    assert places[-1:] == ([tokens] if tokens else [])


# --- common prefix ------------------------------------------------------------------------------------
def test_a_faithful_continuation_agrees_to_the_last_held_token() -> None:
    ids = text(1650)
    assert marks.common_prefix(held(ids[:1599]), digest(ids, anchor_tokens=1599)) == Shared(1599, None)


def test_one_changed_token_is_bounded_from_both_sides() -> None:
    ids = text(1650)
    for place in (0, 140, 1000, 1300, 1598):
        changed = [*ids[:place], ids[place] + 1, *ids[place + 1 :]]
        found = marks.common_prefix(held(ids[:1599]), digest(changed, anchor_tokens=1599))
        assert found is not None
        assert found.high is not None
        assert found.low <= place < found.high
        assert found.high - found.low <= (marks.FINE if place > 1599 - marks.TAIL else marks.LONGEST + 1)


@settings(deadline=None)
@given(data=st.data())
def test_bounds_always_hold_the_first_token_that_differs(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 3000))
    ids = text(size)
    place = data.draw(st.integers(0, size - 1))
    mine, theirs = (
        ids[: data.draw(st.integers(place + 1, size))],
        [*ids[:place], *text(data.draw(st.integers(1, 2000)), 1)],
    )
    theirs[place] = ids[place] + 1
    anchor = data.draw(st.none() | st.just(len(mine)) | st.integers(0, 3000))
    found = marks.common_prefix(held(mine), digest(theirs, anchor_tokens=anchor))
    assert found is not None
    assert found.low <= place
    assert found.high is None or place < found.high


def test_without_an_anchor_the_beginning_shared_is_known_to_within_a_chunk() -> None:
    ids = text(4000)
    found = marks.common_prefix(held(ids[:2500]), digest(ids))
    assert found is not None
    assert found.high is None
    assert 2500 - marks.LONGEST < found.low <= 2500


def test_other_seeds_share_nothing_though_the_tokens_are_equal() -> None:
    ids = text(700)
    other = digest(ids, seed=marks.seed("lora", None))
    found = marks.common_prefix(digest(ids), other)
    assert found is not None
    assert found.low == 0
    assert found.high is not None
    assert marks.seen_elsewhere(other, [digest(ids)]) == 0


def test_digests_under_other_keys_and_unverifiable_ones_are_never_compared() -> None:
    ids = text(700)
    mine = digest(ids)
    for other in (
        digest(ids, keys=Keys(b"another")),
        Digest(request_id="r", leg=Leg.PREFILL, tokens=700, input_tokens=700, unverifiable="prompt_embeds"),
        Digest(request_id="r", leg=Leg.PREFILL, tokens=700, input_tokens=700),
    ):
        assert marks.common_prefix(mine, other) is None
        assert marks.seen_elsewhere(mine, [other]) == 0


def test_marks_that_do_not_fit_their_positions_say_nothing() -> None:
    ids = text(700)
    broken = digest(ids)
    broken.marks, broken.chunks = broken.marks[:-3], b""
    assert marks.common_prefix(broken, digest(ids)) == Shared(0, None)


# --- what was seen elsewhere --------------------------------------------------------------------------
def test_an_early_edit_displaces_the_rest_and_nearly_all_of_it_is_found_again() -> None:
    ids = text(10_000)
    edited = [*ids[:140], 5, 6, 7, *ids[141:]]
    earlier = held(ids)
    found = marks.common_prefix(earlier, digest(edited))
    assert found is not None
    assert found.low <= 140
    assert 0.93 * len(edited) < marks.seen_elsewhere(digest(edited), [earlier]) <= len(edited) - 140


def test_a_faithful_continuation_was_seen_nowhere_else() -> None:
    ids = text(6000)
    assert marks.seen_elsewhere(digest(ids, anchor_tokens=4000), [digest(ids[:2000]), held(ids[:4000])]) == 0


def test_what_stands_twice_counts_as_often_as_it_was_displaced() -> None:
    part = text(3000, 1)
    earlier = held([*text(500, 2), *part])
    once = marks.seen_elsewhere(digest([*text(700, 3), *part]), [earlier])
    twice = marks.seen_elsewhere(digest([*text(700, 3), *part, *part]), [earlier, earlier])
    assert 2500 < once <= 3000
    assert twice == pytest.approx(once, abs=200)


# --- media --------------------------------------------------------------------------------------------
def test_an_image_counts_from_where_it_stands_and_not_before() -> None:
    ids = [*text(1000), *[7] * 576, *text(500, 1)]
    one = digest(ids, media=[Media(1000, 576, "aa")])
    other = digest(ids, media=[Media(1000, 576, "bb")])
    found = marks.common_prefix(one, other)
    assert found is not None
    assert found.high is not None
    assert found.low <= 1000 < found.high
    assert found.low > 700
    assert marks.common_prefix(one, digest(ids, media=[Media(1000, 576, "aa")])) == Shared(len(ids), None)


def test_a_later_image_leaves_what_came_before_it_alone() -> None:
    ids = text(1000)
    with_image = digest([*ids, *[7] * 64, *text(100, 1)], media=[Media(1000, 64, "aa")], anchor_tokens=1000)
    assert marks.common_prefix(held(ids), with_image) == Shared(1000, None)


def test_a_displaced_image_is_found_again_and_another_is_not() -> None:
    ids = [*text(300), *[7] * 2000]
    moved = [*text(310, 1), *[7] * 2000]
    earlier = held(ids, media=[Media(300, 2000, "aa")])
    assert marks.seen_elsewhere(digest(moved, media=[Media(310, 2000, "aa")]), [earlier]) == 2000
    assert marks.seen_elsewhere(digest(moved, media=[Media(310, 2000, "bb")]), [earlier]) == 0


# --- computing ----------------------------------------------------------------------------------------
@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, 2500), max_size=8), salt=st.integers(0, 3))
def test_feeding_in_any_slices_makes_the_same_digest(cuts: list[int], salt: int) -> None:
    ids, media = text(2500, salt), [Media(100, 40, "a"), Media(120, 400, "b"), Media(2400, 100, "c")]
    whole = digest(ids, anchor_tokens=1100, media=media)
    marker = Marker(KEYS, b"", 2500, 1100, media)
    edges = sorted({0, 2500, *cuts})
    for start, end in itertools.pairwise(edges):
        marker.feed(ids[start:end])
    assert marker.result() == (whole.marks, whole.chunks)


@pytest.mark.parametrize("ids", [[0] * 5000, [7, 8] * 3000, text(5000), [*range(4000)]])
def test_chunks_cover_everything_and_keep_their_bounds(ids: list[int]) -> None:
    found = list(marks.chunks_of(digest(ids)))
    assert [found[0].start, found[-1].end] == [0, len(ids)]
    assert all(a.end == b.start for a, b in itertools.pairwise(found))
    assert all(marks.SHORTEST <= c.end - c.start <= marks.LONGEST for c in found[:-1])


def test_a_digest_costs_few_bytes_a_token() -> None:
    made = digest(text(100_000), anchor_tokens=90_000)
    assert len(made.marks) + len(made.chunks) < 0.2 * made.tokens


@pytest.mark.parametrize("bad", [[-1], [2**32], ["a"], [None]])
def test_what_is_no_token_id_is_refused(bad: list[Any]) -> None:
    with pytest.raises((OverflowError, TypeError)):
        Marker(KEYS, b"", 1, None).feed(bad)


def test_a_missing_part_of_the_seed_is_unlike_an_empty_one_and_parts_do_not_run_together() -> None:
    seeds = [marks.seed(None, "a"), marks.seed("", "a"), marks.seed("a", None), marks.seed("a", "")]
    assert len(set(seeds)) == 4
    assert marks.seed("ab", "c") != marks.seed("a", "bc")


def test_the_keys_name_does_not_tell_the_key() -> None:
    assert KEYS.id == Keys(b"secret").id != Keys(b"secret2").id
    assert b"secret".hex() not in KEYS.id
    assert len(KEYS.id) == 16


@settings(deadline=None)
@given(tokens=st.integers(0, 9000), anchor=st.none() | st.integers(0, 9999))
def test_slices_cover_all_tokens_and_none_is_long_or_makes_many_marks(tokens: int, anchor: int | None) -> None:
    found = list(marks.slices(tokens, anchor))
    assert [n for start, end in found for n in range(start, end)] == list(range(tokens))
    places = marks.positions(tokens, anchor)
    assert all(sum(start < p <= end for p in places) <= 18 for start, end in found)
    assert all(end - start <= marks.SLICE for start, end in found)


def test_a_chunk_ends_before_each_stop_so_that_what_was_held_is_known_to_the_last_token() -> None:
    stop = 151_645
    keys = Keys(b"secret", [stop])
    ids = [*text(900), stop, *text(50, 1), stop, *text(800, 2)]
    ends = {chunk.end for chunk in marks.chunks_of(digest(ids, keys=keys))}
    assert {900, 951} <= ends
    answered = digest(ids[:951], keys=keys)
    assert marks.common_prefix(answered, digest(ids, keys=keys)) == Shared(951, None)


def test_digests_made_under_other_stops_are_never_compared() -> None:
    ids = text(700)
    assert marks.common_prefix(digest(ids), digest(ids, keys=Keys(b"secret", [5]))) is None


def test_marks_stand_for_everything_before_them_at_chunk_ends_too() -> None:
    ids = text(3000)
    whole, part, other = digest(ids), digest(ids[:1500]), digest([5, *ids[1:]])
    ends = [chunk.end for chunk in marks.chunks_of(whole) if chunk.end <= 1500]
    assert ends
    of_whole, of_part, of_other = (marks.marks_of(d) for d in (whole, part, other))
    assert all(of_whole[end] == of_part[end] for end in ends)
    assert not set(of_whole.values()) & set(of_other.values())
    assert of_part[1500] == marks.marks_of(digest(ids, anchor_tokens=1500))[1500]
    assert list(of_whole) == sorted(of_whole)


def test_a_stop_that_the_other_has_not_is_where_they_differ_and_not_before() -> None:
    keys = Keys(b"secret", [151_645])
    ids = text(300)
    one = digest([*ids, 151_645, *text(4000, 1)], keys=keys)
    other = digest([*ids, 7, *text(4000, 1)], keys=keys)
    found = marks.common_prefix(one, other)
    assert found is not None
    assert found.high is not None
    assert found.low <= 300 < found.high


def test_what_ends_chunks_again_and_again_makes_no_short_ones() -> None:
    ending = [KEYS.classes.index(kind) for kind in (1, 2, 3)]
    found = list(marks.chunks_of(digest(ending * 500)))
    assert {chunk.end - chunk.start for chunk in found[:-1]} == {18}


def test_short_messages_that_return_are_no_sign_of_anything_moved() -> None:
    keys = Keys(b"secret", [151_645])
    short = [151_645, 1, 2, 3]
    earlier = digest([*text(500), *short * 20], keys=keys)
    assert marks.seen_elsewhere(digest([*text(500, 1), *short * 20], keys=keys), [earlier]) == 0


def test_what_returns_while_it_still_stands_in_its_place_was_not_displaced() -> None:
    part, more = text(3000), text(1000, 1)
    assert marks.seen_elsewhere(digest([*part, *more, *part]), [digest([*part, *more])]) == 0


STOP = 151_645
STOPPING = Keys(b"secret", [STOP])
ENDING = [STOPPING.classes.index(kind) for kind in (1, 2, 3)]
FEW = st.lists(st.sampled_from([*ENDING, STOP, 7, 9, 200]), max_size=900)
"""Sequences in which chunks end often, for every reason there is."""


@st.composite
def with_media(draw: st.DrawFn, ids: list[int]) -> tuple[list[int], list[Media]]:
    places = sorted(draw(st.lists(st.integers(0, max(0, len(ids) - 60)), max_size=3)))
    return ids, [Media(place, draw(st.integers(1, 60)), draw(st.sampled_from("ab"))) for place in places]


def meaning(ids: list[int], media: list[Media]) -> list[tuple[Any, ...]]:
    """What each token stands for."""
    return [
        (token, *((m.identifier, n - m.offset) for m in sorted(media) if m.offset <= n < m.offset + m.tokens))
        for n, token in enumerate(ids)
    ]


@settings(deadline=None)
@given(data=st.data(), beginning=FEW, ends=st.tuples(FEW, FEW))
def test_bounds_hold_whatever_ends_chunks_and_wherever_media_stand(
    data: st.DataObject, beginning: list[int], ends: tuple[list[int], list[int]]
) -> None:
    (one, media), (other, others) = (data.draw(with_media([*beginning, *end])) for end in ends)
    if data.draw(st.booleans()):
        others = [m for m in media if m.offset + m.tokens <= len(other)]
    anchors = data.draw(st.tuples(st.none() | st.integers(0, 1800), st.none() | st.integers(0, 1800)))
    found = marks.common_prefix(
        digest(one, keys=STOPPING, media=media, anchor_tokens=anchors[0]),
        digest(other, keys=STOPPING, media=others, anchor_tokens=anchors[1]),
    )
    assert found is not None
    pairs = zip(meaning(one, media), meaning(other, others), strict=False)
    first = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
    assert found.low <= (min(len(one), len(other)) if first is None else first)
    assert found.high is None or (first is not None and first < found.high)
