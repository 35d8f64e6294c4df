"""The period's answer: where the time went, whether reuse would help, and what to look at next."""

from __future__ import annotations

import streamlit as st

from turnscope_app import cards, controls, data, tables

store = data.store()
totals = data.totals(store)

st.title("Where the agents' time goes", anchor=False)
if totals.turns == 0:
    controls.nothing_yet()
controls.copy_link(page="home")
tables.cards(cards.store(totals), page="home")
