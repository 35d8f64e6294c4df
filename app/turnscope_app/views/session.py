"""One session: where its time went, what happened when, and every turn of it."""

from __future__ import annotations

import functools
import time

import streamlit as st

from turnscope.model.figures import of_session
from turnscope.shipped import LABELS_VARIABLE, LINKS_VARIABLE
from turnscope_app import (
    cards,
    charts,
    controls,
    data,
    doubt,
    drawings,
    opted,
    pages,
    part_charts,
    report,
    session_answer,
    session_story,
    stories,
    tables,
    task_table,
    text,
    timeline,
    timeline_section,
    turn_section,
)

store = data.store()
session_id = st.query_params.get(pages.ID)
loose = not session_id and pages.UNATTRIBUTED in st.query_params
if not session_id and not loose:
    st.title("One session")
    st.info("Choose a session in the list: this page shows its turns.", icon=":material/touch_app:")
    st.page_link(pages.SESSIONS, label="To the sessions")
    st.stop()

whole = data.whole(store, session_id) if session_id else None
if whole is None and (not loose or data.session(store, None) is None):
    st.title("One session")
    st.info("The store has no turn of this session. It may be too new: a turn appears about a minute after it ended.")
    st.text(text.session(session_id or None))
    st.page_link(pages.SESSIONS, label="To the sessions")
    st.stop()

st.page_link(
    pages.SESSIONS,
    label="All sessions",
    icon=":material/arrow_back:",
    query_params=st.session_state.get(pages.BACK, {}),
)
applications = whole.summary.applications if whole is not None else []
label = opted.label(opted.templates(LABELS_VARIABLE), applications, session_id)
st.title(
    text.escaped(text.harmless(label) if label else text.named(applications, (), session_id or None)), anchor=False
)
with st.container(horizontal=True, vertical_alignment="center"):
    controls.copy_link(page="session")
    if whole is not None:
        st.download_button(
            "Report",
            data=functools.partial(report.build, whole, time.time_ns()),
            file_name=report.file_name(whole.summary.session_id),
            mime="text/html",
            key="session_report",
            on_click="ignore",
            icon=":material/description:",
            help="This session as one HTML file that needs no network, to send or to print.",
        )
    link = opted.link(opted.templates(LINKS_VARIABLE), applications, session_id)
    if link is not None:
        st.link_button("In its own trace tool", link, icon=":material/open_in_new:")
if whole is None:
    turn_section.without_session(store)
    st.stop()

# --- the answer -----------------------------------------------------------------------------------------
summary = whole.summary
st.caption(text.escaped(session_answer.head(summary)))
st.markdown(f"**{session_answer.answer(summary)}** {session_answer.ceiling(summary)}")
if summary.suspicious_turns:
    told = doubt.in_short(whole.turns.select(doubt.READS).to_pylist())
    st.warning(f"{told} The story below says which and why.", icon=":material/warning:")
st.markdown("**What to do next**")
for action in session_answer.next_steps(summary):
    st.markdown(controls.owned(action))
figures = of_session(summary)
frame = part_charts.parts_frame(figures)
if not frame.empty:
    drawings.chart(part_charts.parts(frame), key="session_parts")
    st.html(tables.part_style())
    tables.parts(cards.parts(figures), page="session")
for unknown in session_answer.doubts(summary):
    st.caption(unknown)
if not session_answer.separated(summary):
    with st.expander("Outside the model: tools or application, not separated", icon=":material/call_split:"):
        st.markdown(session_answer.NOT_SEPARATED)
        st.code(session_answer.SEPARATES, language="bash")
tables.cards(cards.session(summary, whole.turns), page="session")

# --- what happened --------------------------------------------------------------------------------------
numbers = stories.numbers(whole.turns["turn_index"].to_pylist())
by_id = {str(turn_id): number for turn_id, number in zip(whole.turns["turn_id"].to_pylist(), numbers, strict=True)}
lines, more = session_story.lines(whole.turns.select(session_story.READS).to_pylist(), numbers, whole.segments)

st.subheader("What happened when", anchor=False)
page = turn_section.page(len(numbers), numbers)
offset = (page - 1) * turn_section.PAGE
shown = whole.turns.slice(offset, turn_section.PAGE)
rows = shown.to_pylist()
here = numbers[offset : offset + turn_section.PAGE]
last_page = turn_section.pages(len(numbers))
if last_page > 1:
    overview = charts.overview_frame(whole, numbers, turn_section.PAGE)
    drawings.chart(charts.overview(overview), key="session_overview")
drawn = timeline.build(whole, rows, here, first=page == 1, last=page == last_page)
if drawn.lanes:
    timeline_section.draw(drawn, f"{session_id} {page}")

if lines:
    st.subheader("The story", anchor=False, help="What mattered most, in order of time. Click a turn to see it below.")
    with st.container(gap=None, key="session_lines"):
        for place, line in enumerate(lines):
            if line.turn is None:
                st.markdown(text.escaped(line.said))
                continue
            st.button(
                text.escaped(line.said),
                key=f"session_line_{place}",
                type="tertiary",
                on_click=turn_section.go_to,
                args=(line.turn, numbers),
                help=f"Show turn {line.turn:,} below",
            )
    if more:
        st.caption(f"... and {more:,} lesser things: the table below has every turn.")
if rows:
    turn_section.story(rows, here, numbers, by_id)

# --- task by task ---------------------------------------------------------------------------------------
if summary.tasks:
    st.subheader(
        "Tasks",
        anchor=False,
        help="A task goes from a user's message to the first answer that asks for no tool. A faster first token is not "
        "a faster task.",
    )
    count = len(summary.tasks)
    st.caption(text.shown_of(min(count, task_table.MOST), count, "task"))
    shown_columns = task_table.columns(summary.tasks)
    tables.show(task_table.frame(summary.tasks), shown_columns, key="session_tasks", pinned="number")

# --- turn by turn ---------------------------------------------------------------------------------------
left, right = st.columns(2)
with left:
    st.subheader("Where the prompt came from", anchor=False, help="Prompt tokens of each turn, by source. Measured.")
    frame = charts.tokens_frame(shown, here)
    if frame.empty:
        st.info("Not measured: the server that reads prompts did not report these turns (prefill engine's hook).")
    else:
        drawings.chart(charts.tokens(frame, here), key="session_tokens")
with right:
    st.subheader(
        "What the wait for the first word was",
        anchor=False,
        help="From the request at the proxy to the answer's first word (time to first token), by what it was spent on. "
        "Measured by the hooks.",
    )
    frame = charts.ttft_frame(shown, here)
    if frame.empty:
        st.info("Not measured: it takes the proxy's hook, and answers that began.")
    else:
        drawings.chart(charts.ttft(frame, here), key="session_ttft")
if rows:
    turn_section.table(shown, rows, here, len(numbers))

# --- for engineers --------------------------------------------------------------------------------------
# Charts take a browser the longest: these are drawn once somebody opens them.
details = st.expander(
    "How the context grew, and what moved between the engines", key="session_engine", bind="query-params"
)
if details.open:
    with details:
        left, right = st.columns(2)
        with left:
            st.markdown("**How the context grew**", help="Prompt and answer of every turn of the session, in tokens.")
            frame = charts.context_frame(whole.turns, numbers)
            if frame.empty:
                st.info("Not measured: no engine's hook reported these turns.")
            else:
                drawings.chart(charts.context(frame), key="session_context")
        with right:
            st.markdown(
                "**What was moved**",
                help="Fetched back: from the server that writes answers to the one that reads prompts (reverse fetch). "
                "Handed over: the other way (handoff).",
            )
            frame = charts.bytes_frame(shown, here)
            if frame.empty:
                st.info("No transfer between the engines was reported for these turns.")
            else:
                drawings.chart(charts.transferred(frame, here), key="session_bytes")
        st.markdown(
            "**How long the engines took**",
            help="Prefill: computing the prompt, on the server that reads prompts. Fetch: reading back what the server "
            "that writes answers (decode engine) had kept, an upper bound.",
        )
        frame = charts.times_frame(shown, here)
        if frame.empty:
            st.info("Not measured: no engine's hook reported times for these turns.")
        else:
            drawings.chart(charts.times(frame, here), key="session_times")
