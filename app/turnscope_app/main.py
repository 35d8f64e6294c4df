"""The explorer's entry: navigation, and the one place where a store that cannot be read is explained."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from turnscope.store import StoreError, StoreMissing
from turnscope_app import controls, pages, tables, text

HERE = Path(__file__).parent

st.set_page_config(page_title="turnscope", page_icon=str(HERE / "icon.svg"), layout="wide")
st.html(HERE / "style.css")
st.html(tables.part_style())
page = st.navigation(pages.ALL, position="top")
controls.demo_notice()
try:
    page.run()
except StoreMissing as error:
    st.error(text.sentence(error), icon=":material/search_off:")
except StoreError as error:
    st.error(text.sentence(error), icon=":material/error:")
    st.caption("Reload this page once it is mended; nothing here has to be restarted.")
else:
    controls.not_this()
