"""One session, turn by turn."""

from __future__ import annotations

import streamlit as st

from turnscope_app import cards, charts, data, fields, frames, pages, stories, tables, text

store = data.store()
session_id = st.query_params.get(pages.ID)
if not session_id and pages.UNATTRIBUTED not in st.query_params:
    st.title("One session")
    st.info("Choose a session in the list: this page shows its turns.", icon=":material/touch_app:")
    st.page_link(pages.SESSIONS, label="To the sessions")
    st.stop()

session_id = session_id or None
summary = data.session(store, session_id)
if summary is None:
    st.title("One session")
    st.info("The store has no turn of this session. It may be too new: a turn appears about a minute after it ended.")
    st.text(text.session(session_id))
    st.page_link(pages.SESSIONS, label="To the sessions")
    st.stop()

st.page_link(
    pages.SESSIONS,
    label="All sessions",
    icon=":material/arrow_back:",
    query_params=st.session_state.get(pages.BACK, {}),
)
st.title(text.escaped(text.session(session_id)), anchor=False)
st.markdown(text.escaped(stories.session(summary)))
if session_id is None:
    st.info(
        f"{stories.unattributed(summary, proxy_reports=data.totals(store).attempt_turns > 0)} "
        "Let clients send `conversation_id` in the body, or the header `X-Session-ID`.",
        icon=":material/help:",
    )
tables.cards(cards.session(summary), page="session")

first_page = 1
shown_page = first_page
if summary["turns"] > data.LIMIT:
    shown_page = st.number_input(
        f"Page of {data.LIMIT:,} turns",
        min_value=first_page,
        max_value=data.pages(summary["turns"]),
        key="session_page",
        bind="query-params",
    )
offset = data.offset(shown_page)
table, total = data.turns(store, session_id, offset)
holds = data.holds(store, session_id)
rows = table.to_pylist()
numbers = frames.numbers(rows, offset)

suspicious = [(number, row) for number, row in zip(numbers, rows, strict=True) if row["suspicions"]]
for number, row in suspicious[: stories.MOST_WARNINGS]:
    st.warning(
        f"**Turn {number}: the answer may be wrong.** {text.escaped(stories.warning(row))}", icon=":material/warning:"
    )
if len(suspicious) > stories.MOST_WARNINGS:
    st.caption(f"{text.turns(len(suspicious))} on this page may have a wrong answer: marked ⚠ in the table.")

left, right = st.columns(2)
with left:
    st.subheader("Where the prompt came from", anchor=False, help="Prompt tokens of each turn, by source.")
    frame = charts.tokens_frame(table, offset)
    if frame.empty:
        st.info("Not measured: the prefill engine's hook did not report these turns.")
    else:
        st.altair_chart(charts.tokens(frame, numbers), key="session_tokens")
with right:
    st.subheader(
        "How long it took",
        anchor=False,
        help="First token: request at the proxy to first content byte. Prefill: on the prefill engine. "
        "Fetch: reading back from the decode worker, an upper bound.",
    )
    frame = charts.times_frame(table, offset)
    if frame.empty:
        st.info("Not measured: neither the engines' hooks nor the proxy's reported times for these turns.")
    else:
        st.altair_chart(charts.times(frame, numbers), key="session_times")
left, right = st.columns(2)
with left:
    st.subheader(
        "What was moved",
        anchor=False,
        help="Fetched back: decode to prefill worker (reverse fetch). Handed over: prefill to decode worker (handoff).",
    )
    frame = charts.bytes_frame(table, offset)
    if frame.empty:
        st.info("No transfer between the workers was reported for these turns.")
    else:
        st.altair_chart(charts.transferred(frame, numbers), key="session_bytes")
with right:
    st.subheader(
        "What was kept for the next turn",
        anchor=False,
        help="When the decode worker kept each turn's blocks (hold), and what became of them.",
    )
    frame = charts.holds_frame(table, holds, offset)
    if frame.empty:
        st.info("No turn here left blocks on a decode worker, as far as was seen.")
    else:
        st.altair_chart(charts.holds(frame, numbers), key="session_holds")

st.subheader("Turns", anchor=False)
st.caption(f"{text.shown_of(len(rows), total, 'turn')} Click one to read its story below.")


def choose_turn() -> None:
    """Show the story of the turn that was clicked."""
    row = tables.chosen(st.session_state["session_table"])
    if row is not None:
        st.session_state["session_turn"] = numbers[row]


tables.choose(frames.turns(table, offset), fields.TURNS, key="session_table", pinned=("number",), on_select=choose_turn)
number = st.selectbox(
    "Story of turn", numbers, index=stories.most_telling(rows), key="session_turn", bind="query-params", width=160
)
turn = rows[numbers.index(number)]
with st.container(border=True):
    if turn["suspicions"]:
        st.markdown(f":material/warning: **The answer may be wrong.** {text.escaped(stories.warning(turn))}")
    st.markdown("\n\n".join(text.escaped(part) for part in stories.whole(turn)))
    st.caption("Trace id of this turn, in your tracing backend and in exemplars")
    st.text(turn["turn_id"])
details = st.expander(f"Every figure of turn {number}", key="session_details", bind="query-params")
if details.open:
    with details:
        for group in fields.GROUPS:
            st.markdown(f"**{group.title}**")
            tables.read(frames.details(turn, group), header=False)
