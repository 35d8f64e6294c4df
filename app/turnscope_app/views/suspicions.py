"""Answers that may be wrong over a period: each with its evidence, and what to do about it."""

from __future__ import annotations

from typing import Final

import streamlit as st

from turnscope_app import advice, controls, data, frames, narrowing, pages, period_data, suspicion_frames, tables, text

_CLEARED: Final = ":material/filter_alt_off:"
store = data.store()
totals = data.totals(store)
controls.head("Suspicions", page="suspicions")
if totals.turns == 0:
    controls.nothing_yet()
st.markdown(
    "Reused memory has to be of **exactly** the text that the prompt begins with. Where there is evidence that it was "
    "not, the answer may be wrong although the engine reported success. One is enough to look."
)
narrowed = narrowing.bar(store, totals, page="suspicions")
counts = period_data.suspicion_counts(store, narrowed.asked).to_pylist()
if not counts[0]["judged"]:
    controls.nothing_here()
tables.cards(suspicion_frames.counted(counts[0]), page="suspicions")
if counts[0]["turns"]:
    st.markdown(suspicion_frames.meaning(counts[0]))
st.caption(suspicion_frames.apart(counts[0]))
if not counts[0]["turns"]:
    st.success("No answer of this period is suspected.", icon=":material/check_circle:")
    st.stop()

kinds = suspicion_frames.kinds(counts)
kind = st.pills(
    "Only of this kind; one turn may be of several",
    list(kinds),
    format_func=lambda kind: kinds[kind],
    key="suspicions_kind",
    bind="query-params",
)
of_session = st.text_input(
    "Of the session",
    key=advice.SUSPICIONS_OF,
    bind="query-params",
    placeholder="all sessions",
    help="Its whole id.",
    width=420,
)
found, total = period_data.suspicions(store, narrowed.asked, kind, of_session or None)
rows = found.to_pylist()
if not rows:
    st.info("No suspected turn is of this kind and session. Clear one of the two to see more.", icon=_CLEARED)
    st.stop()
st.caption(f"{text.shown_of(len(rows), total, 'turn')} The newest first. Click one to see its evidence below.")
row = tables.choose(
    frames.of(rows, suspicion_frames.LISTED), suspicion_frames.LISTED, key="suspicions_table", pinned="session"
)
controls.download(found, "suspicions", page="suspicions")
chosen = rows[row or 0]
with st.container(border=True, key="suspicions_evidence"):
    st.subheader(text.escaped(suspicion_frames.titled(chosen)), anchor=False)
    st.page_link(
        pages.SESSION,
        label="Open this turn in its session",
        icon=":material/open_in_new:",
        query_params=pages.turn_link(chosen["session_id"], chosen["turn_index"]),
    )
    for what, sentence in suspicion_frames.evidence(chosen):
        st.markdown(f"**{text.escaped(what)}**  \n{text.escaped(sentence)}")
    for paragraph in suspicion_frames.next_steps(chosen):
        st.markdown(f":material/build: **What to do.** {paragraph}")
    for runbook in suspicion_frames.runbooks(chosen):
        st.page_link(
            pages.RUNBOOKS,
            label=f"Runbook {runbook.removesuffix('.md')}",
            icon=":material/emergency:",
            query_params={"runbooks_file": runbook},
        )
