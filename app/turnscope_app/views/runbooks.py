"""What to do when an alert fires: the runbooks that come with the package."""

from __future__ import annotations

import streamlit as st

from turnscope import shipped
from turnscope_app import text

books = shipped.runbooks()

chosen = st.selectbox(
    "Alert",
    list(books),
    index=None,
    format_func=str,
    placeholder="which one fired?",
    key="runbooks_file",
    bind="query-params",
    help="Alerts of Prometheus link to this page.",
)
if chosen is None:
    st.title("Runbooks")
    st.markdown(
        "One for each alert: what stops the harm and what that costs, what it means, how to find the very "
        "conversations, and how to rule turnscope itself out. **Choose the alert that fired.** The rules for "
        "Prometheus come with the package: `turnscope assets DIR` writes them out."
    )
    st.stop()
st.markdown(text.runbook(books[chosen]))
