"""All sessions, to filter, order and choose from."""

from __future__ import annotations

import streamlit as st

from turnscope_app import (
    cards,
    columns,
    controls,
    data,
    filters,
    frames,
    opted,
    pages,
    periods,
    stories,
    tables,
    text,
    words,
)

store = data.store()
count, _, newest_ns = data.bounds(store)
totals = data.totals(store)

controls.head("Sessions", page="sessions")
if count == 0 and totals.turns == 0:
    controls.nothing_yet()

st.markdown("Each is one conversation or one run of an agent. **Click a session** to see its turns one by one.")
tables.cards(cards.store(totals, count), page="sessions")

names = data.names(store)
with st.container(horizontal=True, vertical_alignment="bottom"):
    search = st.text_input(
        "Session id contains", key="sessions_text", bind="query-params", placeholder="any", icon=":material/search:"
    )
    chosen = {
        field: st.selectbox(
            label,
            names[field],
            index=None,
            format_func=text.harmless,
            placeholder="any",
            key=f"sessions_{field}",
            bind="query-params",
        )
        for field, label in (("applications", "Application"), ("agents", "Agent"))
        if field in names
    }
    period = st.selectbox(
        "Period",
        periods.NAMES,
        key="sessions_period",
        bind="query-params",
        help="Counted back from the end of the newest session in the store.",
    )
    sort = st.selectbox("Order", list(filters.SORTS), key="sessions_sort", bind="query-params")
    check = st.pills("Only sessions with", list(filters.CHECKS), key="sessions_check", bind="query-params")
narrowed = any(f"sessions_{name}" in st.query_params for name in filters.MORE)
with st.expander("More filters", expanded=narrowed, icon=":material/filter_alt:"):
    with st.container(horizontal=True, vertical_alignment="bottom"):
        path = st.selectbox(
            "Reuse",
            list(words.PATHS),
            index=None,
            format_func=lambda v: words.PATHS[v].shown,
            placeholder="any",
            key="sessions_path",
            bind="query-params",
            help="Sessions with at least one turn whose prompt was reused in this way (path).",
        )
        reason = st.selectbox(
            "Why no more was fetched back",
            list(words.REASONS),
            index=None,
            format_func=lambda v: words.REASONS[v].shown,
            placeholder="any",
            key="sessions_reason",
            bind="query-params",
            help="Sessions with at least one turn of this reason. The last page explains each.",
        )
        suspicion = st.selectbox(
            "Possibly wrong because",
            list(words.SUSPICIONS),
            index=None,
            format_func=lambda v: words.SUSPICIONS[v].shown,
            placeholder="any",
            key="sessions_suspicion",
            bind="query-params",
            help="Sessions with at least one turn with this evidence (suspicion).",
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        part = st.selectbox(
            "Time spent on",
            list(filters.PARTS),
            index=None,
            placeholder="any",
            key="sessions_part",
            bind="query-params",
        )
        share = st.selectbox("for at least", list(filters.SHARES), key="sessions_share", bind="query-params")
        longer = st.selectbox(
            "Worked for at least",
            list(filters.LENGTHS),
            index=None,
            placeholder="any",
            key="sessions_longer",
            bind="query-params",
            help="Waits for a person are left out.",
        )
        chosen |= {
            field: st.selectbox(
                label,
                names[field],
                index=None,
                format_func=text.harmless,
                placeholder="any",
                key=f"sessions_{field}",
                bind="query-params",
            )
            for field, label in (("models", "Model"), ("deployments", "Deployment"), ("engines", "Engine"))
            if field in names
        }

where = filters.where(
    text=search,
    path=path,
    reason=reason,
    suspicion=suspicion,
    check=check,
    period=period,
    part=part,
    share=share,
    longer=longer,
    newest_ns=newest_ns,
    **{field.removesuffix("s"): name for field, name in chosen.items()},
)
order, descending = filters.SORTS[sort]
table, total = data.sessions(store, where, order.value, descending, 0)
if total > data.LIMIT:
    page = st.number_input(
        f"Page of {data.LIMIT:,} sessions",
        min_value=1,
        max_value=data.pages(total),
        key="sessions_page",
        bind="query-params",
        width=220,
    )
    table, _ = data.sessions(store, where, order.value, descending, data.offset(page))

table = frames.opted(table, opted.templates(opted.LABELS_VARIABLE), opted.templates(opted.LINKS_VARIABLE))
row = None
if total == 0:
    st.info("No session meets all of these filters. Clear one of them to see more.", icon=":material/filter_alt_off:")
else:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(text.shown_of(table.num_rows, total, "session"), width="content")
        controls.download(table, "sessions", page="sessions")
    shown = columns.listed(names, table.column_names)
    row = tables.choose(frames.sessions(table, shown), shown, key="sessions_table", pinned=columns.WHO)
if row is not None:
    st.session_state[pages.BACK] = st.query_params.to_dict()
    st.switch_page(pages.SESSION, query_params=pages.session_link(table["session_id"][row].as_py()))

if totals.unattributed_turns and not where:
    st.subheader(words.UNATTRIBUTED, anchor=False)
    loose = data.unattributed(store).to_pylist()[0]
    st.caption(stories.unattributed(loose, proxy_reports=totals.attempt_turns > 0))
    st.page_link(pages.SESSION, label="To these turns", icon=":material/list:", query_params=pages.session_link(None))
