"""The session page's timeline, and the buttons that zoom it: for hands on a keyboard, and for those without a wheel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

from turnscope_app import drawings, timeline_chart
from turnscope_app.timeline import Timeline
from turnscope_app.zoom import WHOLE, View

_VIEW: Final = "session_view"
"""Of the session's state: what is drawn, and which part of it."""
_STEPS: Final[dict[str, tuple[str, Callable[[View], View]]]] = {
    "Zoom in": ("zoom_in", View.nearer),
    "Zoom out": ("zoom_out", View.wider),
    "Earlier": ("arrow_back", View.earlier),
    "Later": ("arrow_forward", View.later),
    "All": ("fit_width", lambda _: WHOLE),
}


# By itself: a step draws the timeline anew, and not the page.
@st.fragment
def draw(timeline: Timeline, what: str) -> None:
    """The timeline with its buttons. ``what`` it is of; of something else all is shown at first."""
    view = _view(what)
    with st.container(horizontal=True, gap="small", key="session_zoom"):
        for name, (icon, step) in _STEPS.items():
            st.button(
                name,
                key=f"session_zoom_{icon}",
                icon=f":material/{icon}:",
                type="tertiary",
                on_click=_go,
                args=(what, step),
            )
    drawings.chart(timeline_chart.chart(timeline, view), key="session_timeline")
    st.caption(timeline_chart.reading(timeline))


def _view(what: str) -> View:
    of, view = st.session_state.get(_VIEW, ("", WHOLE))
    return view if of == what else WHOLE


def _go(what: str, step: Callable[[View], View]) -> None:
    st.session_state[_VIEW] = what, step(_view(what))
