"""Where one list of messages stops continuing another. Letters stand for messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnscope.history.compare import first_change
from turnscope.semconv import Divergence


@pytest.mark.parametrize(
    ("before", "now", "at", "kind", "removed", "added"),
    [
        ("sua", "Suauau", 0, "edited", 1, 1),
        ("suauau", "suaUau", 3, "edited", 1, 1),
        ("suabv", "suABvcw", 2, "edited", 2, 2),
        ("sucdv", "sudvw", 2, "removed", 1, 0),
        ("sabcdef", "sdefgh", 1, "removed", 3, 0),
        ("suav", "sumavw", 2, "inserted", 0, 1),
        ("suav", "su", 2, "truncated", 2, 0),
        ("sabcdefu", "sXefuv", 1, "compacted", 4, 1),
        ("sabcdu", "sXY", 1, "compacted", 5, 2),
        ("su", "sX", 1, "edited", 1, 1),
        ("", "", None, None, 0, 0),
    ],
)
def test_each_kind_of_change_is_told(
    before: str, now: str, at: int | None, kind: str | None, removed: int, added: int
) -> None:
    found = first_change(before, now)
    assert (found and tuple(found)) == (None if at is None else (at, kind, removed, added))


@given(st.text("abc"), st.text("abc"))
def test_what_begins_with_all_of_the_other_continues_it_and_nothing_else_does(before: str, now: str) -> None:
    assert (first_change(before, now) is None) is now.startswith(before)


@given(st.text("abc"), st.text("abc"))
def test_the_lists_agree_up_to_the_place_and_from_where_the_change_ends(before: str, now: str) -> None:
    found = first_change(before, now)
    if found is None:
        return
    assert before[: found.at] == now[: found.at]
    rest, other = before[found.at + found.removed :], now[found.at + found.added :]
    assert rest[:1] == other[:1] or found.kind is Divergence.TRUNCATED or not (rest and other)
    assert before[found.at : found.at + 1] != now[found.at : found.at + 1]
