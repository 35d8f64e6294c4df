"""All sessions, to filter, order and choose from."""

from __future__ import annotations

import streamlit as st

from turnscope_app import cards, columns, controls, data, filters, frames, pages, stories, tables, text, words

store = data.store()
totals = data.totals(store)

st.title("Sessions")
if totals.turns == 0:
    controls.nothing_yet()
controls.copy_link(page="sessions")
st.markdown(
    "What did each agent turn compute, fetch back and wait for? **Click a session** to see its turns one by one."
)
tables.cards(cards.store(totals), page="sessions")

choices = data.choices(store)
with st.container(horizontal=True, vertical_alignment="bottom"):
    search = st.text_input(
        "Session id contains", key="sessions_text", bind="query-params", placeholder="any", icon=":material/search:"
    )
    path = st.selectbox(
        "Reuse",
        list(words.PATHS),
        index=None,
        format_func=lambda v: words.PATHS[v].shown,
        placeholder="any",
        key="sessions_path",
        bind="query-params",
        help="Sessions with at least one turn whose prompt was reused in this way.",
    )
    reason = st.selectbox(
        "Why no more was fetched back",
        list(words.REASONS),
        index=None,
        format_func=lambda v: words.REASONS[v].shown,
        placeholder="any",
        key="sessions_reason",
        bind="query-params",
        help="Sessions with at least one turn of this reason. The About page explains each.",
    )
    engine = st.selectbox(
        "Engine",
        choices["engine"],
        index=None,
        placeholder="any",
        key="sessions_engine",
        bind="query-params",
        help="Sessions with at least one turn on this prefill or decode engine.",
    )
    model = st.selectbox(
        "Model", choices["model"], index=None, placeholder="any", key="sessions_model", bind="query-params"
    )
with st.container(horizontal=True, vertical_alignment="bottom"):
    period = st.selectbox(
        "Period",
        list(filters.PERIODS),
        index=None,
        placeholder="all",
        key="sessions_period",
        bind="query-params",
        help="Counted back from the newest turn in the store.",
    )
    sort = st.selectbox("Order", list(filters.SORTS), key="sessions_sort", bind="query-params")
    check = st.pills("Only sessions with turns", list(filters.CHECKS), key="sessions_check", bind="query-params")

where = filters.where(
    text=search,
    path=path,
    reason=reason,
    engine=engine,
    model=model,
    check=check,
    period=period,
    newest_ns=totals.last_ns,
)
order, descending = filters.SORTS[sort]
table, total = data.sessions(store, where, order.value, descending)

row = None
if total == 0:
    st.info("No session meets all of these filters. Clear one of them to see more.", icon=":material/filter_alt_off:")
else:
    st.caption(text.shown_of(table.num_rows, total, "session"))
    controls.download(table, "sessions", page="sessions")
    row = tables.choose(frames.sessions(table), columns.SESSIONS, key="sessions_table", pinned="session")
if row is not None:
    st.session_state[pages.BACK] = st.query_params.to_dict()
    st.switch_page(pages.SESSION, query_params=pages.session_link(table["session_id"][row].as_py()))

loose = data.unattributed(store, where) if totals.unattributed_turns else None
if loose is not None and loose.num_rows:
    st.subheader(words.UNATTRIBUTED, anchor=False)
    st.caption(stories.unattributed(loose.to_pylist()[0], proxy_reports=totals.attempt_turns > 0))
    if tables.choose(frames.sessions(loose), columns.SESSIONS, key="sessions_loose", pinned="session") is not None:
        st.session_state[pages.BACK] = st.query_params.to_dict()
        st.switch_page(pages.SESSION, query_params=pages.session_link(None))
