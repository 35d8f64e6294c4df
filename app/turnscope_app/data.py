"""What the pages ask the store, remembered for a few seconds so that a click does not ask again."""

from __future__ import annotations

import os
from typing import Any, Final

import pyarrow as pa
import streamlit as st

from turnscope.store import StoreReader
from turnscope.store.queries import SessionFilter, SessionSort
from turnscope.store.totals import Counts, Totals

STORE_VARIABLE: Final = "TURNSCOPE_EXPLORE_STORE"
"""Set by ``turnscope explore``: the store's address."""
LIMIT: Final = 1_000
"""Rows that are sent to a browser at most."""
FRESH_SECONDS: Final = 5


def store_url() -> str:
    """The address of the store that this explorer shows."""
    return os.environ.get(STORE_VARIABLE, "")


def pages(total: int) -> int:
    """How many pages of ``LIMIT`` rows ``total`` rows make."""
    return max(1, -(-total // LIMIT))


def offset(page: int) -> int:
    """How many rows come before page ``page``, counted from 1."""
    return (page - 1) * LIMIT


@st.cache_resource(max_entries=4, show_spinner=False)
def _reader(url: str) -> StoreReader:
    return StoreReader(url)


@st.cache_data(ttl=FRESH_SECONDS, max_entries=64, show_spinner=False)
def sessions(url: str, where: tuple[tuple[str, Any], ...], sort: str, descending: bool) -> tuple[pa.Table, int]:
    """At most ``LIMIT`` sessions that meet ``where`` (fields of ``SessionFilter``), and how many there are in all."""
    page = _reader(url).sessions(
        SessionFilter(**dict(where)), sort=SessionSort(sort), descending=descending, limit=LIMIT
    )
    return page.table, page.total


@st.cache_data(ttl=FRESH_SECONDS, max_entries=64, show_spinner=False)
def unattributed(url: str, where: tuple[tuple[str, Any], ...]) -> pa.Table:
    """The turns without a session id as one row with the columns of ``sessions``; no row if none meets ``where``."""
    return _reader(url).unattributed(SessionFilter(**dict(where)))


@st.cache_data(ttl=FRESH_SECONDS, max_entries=64, show_spinner=False)
def session(url: str, session_id: str | None) -> dict[str, Any] | None:
    """One session's sums; None if the store has no turn of it."""
    return _reader(url).session(session_id)


@st.cache_data(ttl=FRESH_SECONDS, max_entries=64, show_spinner=False)
def turns(url: str, session_id: str | None, offset: int) -> tuple[pa.Table, int]:
    """At most ``LIMIT`` turns from ``offset`` on, oldest first, and how many there are in all."""
    page = _reader(url).turns(session_id, limit=LIMIT, offset=offset)
    return page.table, page.total


@st.cache_data(ttl=FRESH_SECONDS, max_entries=64, show_spinner=False)
def holds(url: str, session_id: str | None) -> pa.Table:
    """The holds that the session's turns left or were offered."""
    return _reader(url).holds(session_id, limit=2 * LIMIT).table


@st.cache_data(ttl=FRESH_SECONDS, max_entries=4, show_spinner=False)
def totals(url: str) -> Totals:
    """What the whole store covers."""
    return _reader(url).totals()


@st.cache_data(ttl=FRESH_SECONDS, max_entries=4, show_spinner=False)
def counts(url: str) -> Counts:
    """How many turns and holds have each word of the closed vocabularies."""
    return _reader(url).counts()


@st.cache_data(ttl=60, max_entries=4, show_spinner=False)
def choices(url: str) -> dict[str, list[str]]:
    """The models and engines to choose from."""
    return _reader(url).choices()
