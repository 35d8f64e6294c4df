"""The part of a page that shows turns: a page of them at a time, and the story of the one that was chosen."""

from __future__ import annotations

import os
from typing import Any, Final

import pyarrow as pa
import streamlit as st

from turnscope.shipped import TRACE_LINK_VARIABLE
from turnscope_app import controls, data, fields, frames, links, stories, tables, text

"""Set by ``turnscope explore``: the address of a turn's trace, with ``{trace_id}`` where its id is to stand."""
PAGE: Final = 100
"""Turns that are shown at once. With up to seven values each, no chart of them has more than 1,000 rows."""
_TURN: Final = "session_turn"
_PAGE: Final = "session_page"


def pages(total: int) -> int:
    """How many pages of turns there are."""
    return max(1, -(-total // PAGE))


def page(total: int, numbers: list[int] | None = None) -> int:
    """The page to show, from 1; chosen by the reader, or the one with the turn that the link names."""
    if total <= PAGE:
        return 1
    wanted = st.query_params.get(_TURN, "")
    if _PAGE not in st.session_state and _PAGE not in st.query_params and wanted.isdecimal() and numbers is not None:
        st.session_state[_PAGE] = _page_of(int(wanted), numbers)
    return st.number_input(
        f"Page of {PAGE} turns, of {pages(total):,}",
        min_value=1,
        max_value=pages(total),
        key=_PAGE,
        bind="query-params",
        width=260,
    )


def _page_of(number: int, numbers: list[int]) -> int:
    return 1 + numbers.index(number) // PAGE if number in numbers else 1


def go_to(number: int, numbers: list[int]) -> None:
    """Show this turn, and the page that it is on. For callbacks."""
    st.session_state[_TURN] = number
    if len(numbers) > PAGE:
        st.session_state[_PAGE] = _page_of(number, numbers)


def table(shown: pa.Table, rows: list[dict[str, Any]], numbers: list[int], total: int) -> None:
    """The turns, to click on."""
    st.subheader("Turns", anchor=False)
    st.caption(f"{text.shown_of(len(rows), total, 'turn')} Click one to read its story above.")

    def choose() -> None:
        row = tables.chosen(st.session_state["session_table"])
        if row is not None:
            st.session_state[_TURN] = numbers[row]

    tables.choose(frames.turns(rows, numbers), fields.TURNS, key="session_table", pinned=("number",), on_select=choose)
    controls.download(shown, "turns", page="session")


def story(rows: list[dict[str, Any]], numbers: list[int], every: list[int], by_id: dict[str, int]) -> None:
    """One turn's story: which, how it went, its trace, and the turn that it goes on from. ``every`` and ``by_id``: the
    numbers of all turns of the session."""
    with st.container(border=True, key="session_story"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            first = stories.most_telling(rows)
            number = st.selectbox("Turn", numbers, index=first.position, key=_TURN, bind="query-params", width=130)
            turn = rows[numbers.index(number)]
            before = by_id.get(turn["previous_turn_id"] or "")
            if before is not None:
                st.button(
                    f"Turn {before}, which it goes on from",
                    key="session_previous",
                    icon=":material/arrow_back:",
                    type="tertiary",
                    on_click=go_to,
                    args=(before, every),
                )
            link = links.filled(os.environ.get(TRACE_LINK_VARIABLE), turn["turn_id"])
            if link is not None:
                st.link_button("Its trace", link, icon=":material/open_in_new:", type="tertiary")
            again = stories.read_most_again(rows)
            if again is not None and numbers[again] != number:
                st.button(
                    f"Turn {numbers[again]}, which read most again",
                    key="session_again",
                    icon=":material/replay:",
                    type="tertiary",
                    on_click=go_to,
                    args=(numbers[again], every),
                )
        if len(rows) > 1 and number == numbers[first.position]:
            of_page = " of this page" if len(every) > len(rows) else ""
            st.caption(f"Turn {number}{of_page} is told first: it is {first.why}.")
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


def without_session(store: data.Store) -> None:
    """All of a page of the turns that belong to no session."""
    summary = data.session(store, None)
    if summary is None:
        return
    total = summary["turns"]
    st.info(
        f"{stories.unattributed(summary, proxy_reports=data.totals(store).attempt_turns > 0)} "
        "Let clients send `conversation_id` in the body, or the header `X-Session-ID`.",
        icon=":material/help:",
    )
    offset = (page(total) - 1) * PAGE
    shown = data.turns(store, None, offset, PAGE)
    rows = shown.to_pylist()
    numbers = stories.numbers([None] * len(rows), offset)
    story(rows, numbers, numbers, {})
    table(shown, rows, numbers, total)
