"""What every page about a period is narrowed by: the period, the model and the application, kept in the link."""

from __future__ import annotations

from typing import Any, NamedTuple

import streamlit as st

from turnscope.store.totals import Totals
from turnscope_app import controls, data, periods, steps, text


class Narrowed(NamedTuple):
    """What a page was asked for."""

    asked: data.Asked
    """The fields of a ``Scope``."""
    since_ns: int
    until_ns: int
    newest_ns: int
    """The newest moment that the store knows of."""
    filtered: bool

    @property
    def step_ns(self) -> int:
        """How long the steps of a course are."""
        return steps.length(self.since_ns, self.until_ns)


def bar(store: data.Store, totals: Totals, *, page: str) -> Narrowed:
    """Draw the choices of ``page`` and return what was chosen. The store has turns, or sessions that only spans tell
    of."""
    _, first_ns, last_ns = data.bounds(store)
    if totals.first_ns is not None and totals.last_ns is not None:
        first_ns, last_ns = totals.first_ns, totals.last_ns
    names = data.names(store)
    controls.period_asked(page)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        period = st.selectbox(
            "Period",
            periods.NAMES,
            index=periods.NAMES.index(periods.usual(first_ns, last_ns)),
            key=f"{page}_period",
            bind="query-params",
            width=200,
            help="Turns are counted in the period in which they began, tasks in that in which their session ended; "
            "back from the newest turn.",
        )
        model = _choice("Model", names.get("models", []), f"{page}_model")
        application = _choice("Application", names.get("applications", []), f"{page}_application")
    chosen = dict(periods.asked(period, first_ns, last_ns, application))
    asked: dict[str, Any] = {"model": model, "application": application}
    if period in periods.PERIODS:
        asked["since_ns"] = chosen["since_ns"]
    filtered = any(value is not None for value in asked.values())
    st.caption(f"From {text.when(chosen['since_ns'])} to {text.when(chosen['until_ns'])}.")
    return Narrowed(tuple(sorted(asked.items())), chosen["since_ns"], chosen["until_ns"], last_ns, filtered)


def _choice(label: str, names: list[str], key: str) -> str | None:
    """Nothing to choose from is not shown: an application is named only by spans of agents."""
    if not names:
        return None
    return controls.choice(label, names, key=key, shown=text.harmless, nothing="all", width=280)
