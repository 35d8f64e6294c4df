"""The part of a drawing that is shown: steps worked out by hand, and what holds after any of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnscope_app.zoom import WHOLE, View

STEPS: list[Callable[[View], View]] = [View.nearer, View.wider, View.earlier, View.later]


@given(st.lists(st.sampled_from(STEPS), max_size=60))
def test_whatever_is_pressed_something_of_the_drawing_is_shown_and_nothing_beyond_it(
    steps: list[Callable[[View], View]],
) -> None:
    view = WHOLE
    for step in steps:
        view = step(view)
        assert 0 <= view.low < view.high <= 1
        assert view.share >= 1 / 4096


def test_nearer_shows_the_half_in_the_middle_and_wider_undoes_it() -> None:
    assert WHOLE.nearer() == View(0.25, 0.75)
    assert WHOLE.nearer().nearer() == View(0.375, 0.625)
    assert WHOLE.nearer().wider() == WHOLE


@pytest.mark.parametrize(
    ("step", "found"), [(View.later, View(0.5, 1.0)), (View.earlier, View(0.0, 0.5)), (View.wider, WHOLE)]
)
def test_a_step_stops_at_the_ends(step: Callable[[View], View], found: View) -> None:
    assert step(View(0.25, 0.75)) == found
    assert step(found) == found


def test_wider_at_an_end_shows_more_of_what_is_there() -> None:
    assert View(0.875, 1.0).wider() == View(0.75, 1.0)
