"""What to do when an alert fires: the runbooks that come with the package."""

from __future__ import annotations

import streamlit as st

from turnscope import shipped
from turnscope_app import controls, text

_KEY = "runbooks_file"
books = {name.removesuffix(".md"): book for name, book in shipped.runbooks().items()}
asked = st.query_params.get(_KEY)
if asked is not None and asked.endswith(".md"):
    # Alerts link to the file's name.
    st.query_params[_KEY] = asked.removesuffix(".md")
    st.rerun()
controls.not_there("runbook", asked, books)

chosen = st.selectbox(
    "Alert",
    list(books),
    index=None,
    placeholder="which one fired?",
    key=_KEY,
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
    st.markdown(text.runbook_list(books))
    st.stop()
st.markdown(text.runbook(books[chosen]))
