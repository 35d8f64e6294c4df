"""The pages, so that each can link to the others."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import streamlit as st

_VIEWS: Final = Path(__file__).parent / "views"

HOME: Final = st.Page(_VIEWS / "home.py", title="Home", icon=":material/home:", url_path="home", default=True)
SESSIONS: Final = st.Page(_VIEWS / "sessions.py", title="Sessions", icon=":material/forum:", url_path="sessions")
SESSION: Final = st.Page(_VIEWS / "session.py", title="Session", icon=":material/timeline:", url_path="session")
REUSE: Final = st.Page(_VIEWS / "reuse.py", title="Reuse", icon=":material/recycling:", url_path="reuse")
RETENTION: Final = st.Page(
    _VIEWS / "retention.py", title="Retention", icon=":material/hourglass_top:", url_path="retention"
)
TOOLS: Final = st.Page(_VIEWS / "tools.py", title="Tools and tasks", icon=":material/build:", url_path="tools")
SUSPICIONS: Final = st.Page(
    _VIEWS / "suspicions.py", title="Suspicions", icon=":material/warning:", url_path="suspicions"
)
RUNBOOKS: Final = st.Page(_VIEWS / "runbooks.py", title="Runbooks", icon=":material/emergency:", url_path="runbooks")
ABOUT: Final = st.Page(_VIEWS / "about.py", title="About this data", icon=":material/info:", url_path="about")
ALL: Final = (
    HOME,
    SESSIONS,
    SESSION,
    REUSE,
    RETENTION,
    TOOLS,
    SUSPICIONS,
    RUNBOOKS,
    ABOUT,
)
"""In the order of the navigation."""

ID: Final = "id"
"""Query parameter of the session page: the session's id."""
UNATTRIBUTED: Final = "unattributed"
"""Query parameter of the session page: show the turns without a session id instead."""
TURN: Final = "session_turn"
"""Query parameter of the session page: the turn whose story is told."""
BACK: Final = "sessions_back"
"""In the session state: the list's filters when a session was chosen, for the way back."""


def session_link(session_id: str | None) -> dict[str, str]:
    """The session page's query parameters for one session."""
    return {UNATTRIBUTED: "1"} if session_id is None else {ID: session_id}


def same_period(page: str, period: str, application: str | None) -> dict[str, str]:
    """The query parameters of ``page`` that narrow it as the home page is narrowed."""
    named = "applications" if page == "sessions" else "application"
    return {f"{page}_period": period, **({f"{page}_{named}": application} if application else {})}


def turn_link(session_id: str | None, turn_index: int | None) -> dict[str, str]:
    """The same for one turn of it, where its number is known."""
    turn = {} if turn_index is None else {TURN: str(turn_index)}
    return {**session_link(session_id), **turn}
