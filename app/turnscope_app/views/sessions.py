"""All sessions, to filter, order and choose from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import streamlit as st

from turnscope.shipped import LABELS_VARIABLE, LINKS_VARIABLE
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

_LISTED: Final = "sessions_listed"
"""In the session state: the ids of the sessions in the table, a row each."""

# Before anything is drawn: who has clicked a session is not to wait for the list to be made once more.
clicked = tables.chosen(st.session_state["sessions_table"]) if "sessions_table" in st.session_state else None
if clicked is not None:
    st.session_state[pages.BACK] = st.query_params.to_dict()
    st.switch_page(pages.SESSION, query_params=pages.session_link(st.session_state[_LISTED][clicked]))

store = data.store()
count, first_ns, newest_ns = data.bounds(store)

controls.head("Sessions", page="sessions")
if count == 0 and data.totals(store).turns == 0:
    controls.nothing_yet()

st.markdown("Each is one conversation or one run of an agent. **Click a session** to see its turns one by one.")
above = st.container()  # Filled last: the list is what people come for.
names = data.names(store)


def of_words(label: str, vocabulary: Mapping[str, words.Word], field: str, more: str) -> str | None:
    """A filter by a word of a closed vocabulary."""
    return controls.choice(
        label, list(vocabulary), key=f"sessions_{field}", shown=lambda value: vocabulary[value].shown, more=more
    )


def of_names(**labels: str) -> dict[str, str | None]:
    """A filter for each kind of name that any session has."""
    return {
        kind: controls.choice(label, names[kind], key=f"sessions_{kind}", shown=text.harmless)
        for kind, label in labels.items()
        if kind in names
    }


controls.period_asked("sessions")
with st.container(horizontal=True, vertical_alignment="bottom"):
    search = st.text_input(
        "Session id contains", key="sessions_text", bind="query-params", placeholder="any", icon=":material/search:"
    )
    named = of_names(applications="Application", agents="Agent")
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
        path = of_words(
            "Reuse",
            words.PATHS,
            "path",
            "Sessions with at least one turn whose prompt was reused in this way (path).",
        )
        reason = of_words(
            "Why no more was fetched back",
            words.REASONS,
            "reason",
            "Sessions with at least one turn of this reason. The last page explains each.",
        )
        suspicion = of_words(
            "Possibly wrong because",
            words.SUSPICIONS,
            "suspicion",
            "Sessions with at least one turn with this evidence (suspicion).",
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        part = controls.choice("Time spent on", list(filters.PARTS), key="sessions_part")
        share = st.selectbox("for at least", list(filters.SHARES), key="sessions_share", bind="query-params")
        longer = controls.choice(
            "Worked for at least",
            list(filters.LENGTHS),
            key="sessions_longer",
            more="Waits for a person are left out.",
        )
        named |= of_names(models="Model", deployments="Deployment", engines="Engine")

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
    **{field.removesuffix("s"): name for field, name in named.items()},
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

table = frames.opted(table, opted.templates(LABELS_VARIABLE), opted.templates(LINKS_VARIABLE))
if total == 0:
    st.info("No session meets all of these filters. Clear one of them to see more.", icon=":material/filter_alt_off:")
else:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(text.shown_of(table.num_rows, total, "session"), width="content")
        controls.download(table, "sessions", page="sessions")
    shown = columns.listed(names, table.column_names)
    st.session_state[_LISTED] = table["session_id"].to_pylist()
    tables.choose(frames.sessions(table, shown), shown, key="sessions_table", pinned=columns.WHO)

totals = data.totals(store)
with above:
    figures = data.figures(store, periods.asked(periods.ALL, first_ns, newest_ns, None))
    tables.cards(cards.all_sessions(figures, totals.unattributed_turns), page="sessions")
if totals.unattributed_turns and not where:
    st.subheader(words.UNATTRIBUTED, anchor=False)
    loose = data.unattributed(store).to_pylist()[0]
    st.caption(stories.unattributed(loose, proxy_reports=totals.attempt_turns > 0))
    st.page_link(pages.SESSION, label="To these turns", icon=":material/list:", query_params=pages.session_link(None))
