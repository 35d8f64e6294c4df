"""What the pages ask the store, remembered until the store has something new.

Files of a store never change, so an answer stays true for as long as the same ones are listed.
"""

from __future__ import annotations

import os
import time
from typing import Any, Final, NamedTuple

import pyarrow as pa
import streamlit as st

from turnscope.model import Figures, Period, SessionSummary
from turnscope.shipped import STORE_VARIABLE
from turnscope.store import StoreReader
from turnscope.store.session_queries import SummaryFilter, SummarySort
from turnscope.store.summing import fresh
from turnscope.store.totals import Counts, Totals
from turnscope.store.whole import Whole, read

"""Set by ``turnscope explore``: the store's address."""
LIMIT: Final = 1_000
"""Rows that are sent to a browser at most."""
FRESH_SECONDS: Final = 5
"""How often the store is asked whether it has something new, at most."""


FRESH_SESSIONS: Final = 500
"""Sessions without a summary in the store that are summed up here, at most: a running sidecar leaves few."""
Asked = tuple[tuple[str, Any], ...]
"""Fields of a filter or period and their values: what can be remembered by."""


class Store(NamedTuple):
    """The store as it is now: answers are remembered for one of them."""

    url: str
    version: str


def store() -> Store:
    """The store that this explorer shows."""
    url = os.environ.get(STORE_VARIABLE, "")
    return Store(url, _version(url))


def pages(total: int) -> int:
    """How many pages of ``LIMIT`` rows ``total`` rows make."""
    return max(1, -(-total // LIMIT))


def offset(page: int) -> int:
    """How many rows come before page ``page``, counted from 1."""
    return (page - 1) * LIMIT


def reader(store: Store) -> StoreReader:
    """For modules of further questions beside this one."""
    return _reader(store.url)


def fresh_summaries(store: Store) -> list[SessionSummary]:
    """Summaries that the store has not got yet."""
    return _fresh(store)


@st.cache_resource(max_entries=4, show_spinner=False)
def _reader(url: str) -> StoreReader:
    return StoreReader(url)


@st.cache_data(ttl=FRESH_SECONDS, max_entries=4, show_spinner=False)
def _version(url: str) -> str:
    return _reader(url).version()


@st.cache_data(max_entries=64, show_spinner=False)
def sessions(store: Store, where: Asked, sort: str, descending: bool, offset: int) -> tuple[pa.Table, int]:
    """At most ``LIMIT`` sessions that meet ``where`` (fields of ``SummaryFilter``), and how many there are in all."""
    page = _reader(store.url).listed(
        SummaryFilter(**dict(where)),
        sort=SummarySort(sort),
        descending=descending,
        limit=LIMIT,
        offset=offset,
        fresh=_fresh(store),
    )
    return page.table, page.total


@st.cache_data(max_entries=2, show_spinner="Summing up what is new …")
def _fresh(store: Store) -> list[SessionSummary]:
    """Summaries that the store has not got yet, of the newest ``FRESH_SESSIONS`` at most."""
    return fresh(_reader(store.url), time.time_ns(), FRESH_SESSIONS)[0]


@st.cache_data(max_entries=4, show_spinner=False)
def bounds(store: Store) -> tuple[int, int, int]:
    """How many sessions there are, and when the first and the last of them ended."""
    return _reader(store.url).bounds(_fresh(store))


@st.cache_data(max_entries=4, show_spinner=False)
def names(store: Store) -> dict[str, list[str]]:
    """Applications, agents, models, deployments and engines to choose from, the frequent first."""
    return _reader(store.url).names(_fresh(store))


@st.cache_data(max_entries=32, show_spinner=False)
def figures(store: Store, period: Asked) -> Figures:
    """The sums over the sessions of a period."""
    return _reader(store.url).figures(Period(**dict(period)), _fresh(store))


@st.cache_data(max_entries=32, show_spinner=False)
def course(store: Store, period: Asked) -> list[Figures]:
    """The same for each of its steps that has a session."""
    return _reader(store.url).course(Period(**dict(period)), _fresh(store))


@st.cache_data(max_entries=32, show_spinner=False)
def by_application(store: Store, period: Asked) -> list[Figures]:
    """The same for each application."""
    return _reader(store.url).by_application(Period(**dict(period)), _fresh(store))


@st.cache_data(max_entries=32, show_spinner=False)
def telling(store: Store, period: Asked) -> dict[str, SessionSummary]:
    """The typical, the slow and the worst session of a period, as far as there are such."""
    return _reader(store.url).telling(Period(**dict(period)), _fresh(store))


@st.cache_data(max_entries=4, show_spinner=False)
def unattributed(store: Store) -> pa.Table:
    """The turns without a session id as one row with columns of ``sessions``; no row if there are none."""
    return _reader(store.url).unattributed()


@st.cache_data(max_entries=64, show_spinner=False)
def session(store: Store, session_id: str | None) -> dict[str, Any] | None:
    """One session's sums; None if the store has no turn of it."""
    return _reader(store.url).session(session_id)


# The same object for everyone, since copying a long session takes longer than reading it: nobody changes it.
@st.cache_resource(max_entries=8, show_spinner="Reading the session")
def whole(store: Store, session_id: str) -> Whole | None:
    """All that is known of one session; None if that is nothing."""
    return read(_reader(store.url), session_id, time.time_ns())


@st.cache_data(max_entries=64, show_spinner=False)
def turns(store: Store, session_id: str | None, offset: int, limit: int) -> pa.Table:
    """At most ``limit`` turns from ``offset`` on, oldest first."""
    return _reader(store.url).turns(session_id, limit=limit, offset=offset).table


@st.cache_data(max_entries=4, show_spinner=False)
def totals(store: Store) -> Totals:
    """What the whole store covers."""
    return _reader(store.url).totals()


@st.cache_data(max_entries=4, show_spinner=False)
def counts(store: Store) -> Counts:
    """How many turns and holds have each word of the closed vocabularies."""
    return _reader(store.url).counts()
