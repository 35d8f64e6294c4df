"""What the pages about a period ask the store, remembered like all of ``data``."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import streamlit as st

from turnscope.store import process_queries, retention_queries, reuse_queries, suspicion_queries, tool_queries
from turnscope.store.reader import Query
from turnscope.store.scope import Scope
from turnscope.store.totals import Counts, Totals
from turnscope_app.data import LIMIT, Asked, Store, fresh_summaries, reader

_SPINNER: Final = "Reading the store"


def _scope(asked: Asked) -> Scope:
    return Scope(**dict(asked))


def _ask(store: Store, query: Query) -> pa.Table:
    return reader(store).ask(query, fresh_summaries(store))


def _page(store: Store, query: Query) -> tuple[pa.Table, int]:
    found = reader(store).page(query, limit=LIMIT, fresh=fresh_summaries(store))
    return found.table, found.total


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def reuse_course(store: Store, asked: Asked, step_ns: int) -> pa.Table:
    """Turns by step, path and reason."""
    return _ask(store, lambda src: reuse_queries.course(src, _scope(asked), step_ns))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def avoidable(store: Store, asked: Asked) -> pa.Table:
    """What was computed again, by reason, model and application."""
    return _ask(store, lambda src: reuse_queries.avoidable(src, _scope(asked)))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def balance(store: Store, asked: Asked) -> pa.Table:
    """What fetching gained and cost: over all, then by prefill engine."""
    return _ask(store, lambda src: reuse_queries.balance(src, _scope(asked)))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def worst(store: Store, asked: Asked) -> tuple[pa.Table, int]:
    """Turns that fetching cost something, and how many there are in all."""
    return _page(store, lambda src: reuse_queries.worst(src, _scope(asked)))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def retention(store: Store, asked: Asked, step_ns: int, newest_ns: int) -> dict[str, pa.Table]:
    """Pauses, fates of kept blocks and what was held over time, by ``what``."""
    found = _ask(store, lambda src: retention_queries.retention(src, _scope(asked), step_ns, newest_ns))
    kinds = (retention_queries.GAPS, retention_queries.FATES, retention_queries.COURSE)
    rows = found.to_pylist()
    return {
        kind: pa.Table.from_pylist([row for row in rows if row["what"] == kind], schema=found.schema) for kind in kinds
    }


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def tools(store: Store, asked: Asked) -> tuple[pa.Table, int]:
    """Tools by name and application, and how many there are in all."""
    return _page(store, lambda src: tool_queries.called(src, _scope(asked)))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def applications(store: Store, asked: Asked) -> tuple[pa.Table, int]:
    """All sessions together, then each application's version; and how many rows there are in all."""
    return _page(store, lambda src: tool_queries.applications(src, _scope(asked)))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def latencies(store: Store, asked: Asked) -> pa.Table:
    """First token beside the whole task, by turn of a session and by length of the prompt."""
    return _ask(store, lambda src: tool_queries.latencies(src, _scope(asked)))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def task_course(store: Store, asked: Asked, step_ns: int) -> pa.Table:
    """First token and whole task by step."""
    return _ask(store, lambda src: tool_queries.course(src, _scope(asked), step_ns))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def evaluated(store: Store, asked: Asked) -> tuple[pa.Table, int]:
    """Evaluations' results, and how many kinds there are in all."""
    return _page(store, lambda src: tool_queries.evaluated(src, _scope(asked)))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def suspicions(store: Store, asked: Asked, kind: str | None, session_id: str | None) -> tuple[pa.Table, int]:
    """Turns whose answers may be wrong, with the evidence, and how many there are in all."""
    return _page(store, lambda src: suspicion_queries.listed(src, _scope(asked), kind, session_id))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def suspicion_counts(store: Store, asked: Asked) -> pa.Table:
    """Turns by kind of suspicion; first, with the kind None, all."""
    return _ask(store, lambda src: suspicion_queries.counted(src, _scope(asked)))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def totals(store: Store, asked: Asked) -> Totals:
    """What the store covers of what was asked for."""
    return reader(store).totals(_scope(asked), fresh_summaries(store))


@st.cache_data(max_entries=32, show_spinner=_SPINNER)
def counts(store: Store, asked: Asked, *, fates: bool) -> Counts:
    """How many turns of it have each word of the closed vocabularies; with ``fates``, holds as well."""
    return reader(store).counts(_scope(asked), fresh_summaries(store), fates=fates)


@st.cache_data(max_entries=4, show_spinner=_SPINNER)
def processes(store: Store) -> tuple[pa.Table, int]:
    """Processes with a hook, those heard last first, and how many there are in all."""
    return _page(store, process_queries.heard)
