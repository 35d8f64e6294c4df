"""Streamlit's own command line, with what the pages need imported before the port answers.

Streamlit imports a page's modules when the first person opens it, who would wait for pandas and DuckDB. And it looks
for garbage after every run of a page, while the page waits: what was imported is none, and need not be looked at.
"""

from __future__ import annotations

import gc
import sys

from altair.utils import schemapi
from streamlit.web.cli import main

from turnscope.store import StoreReader
from turnscope_app import charts, frames, tables

WARM = (StoreReader, charts, frames, tables)

if __name__ == "__main__":
    sys.argv[0] = "streamlit"
    schemapi.disable_debug_mode()  # Charts are compared with their schema by tests, not in front of people.
    gc.freeze()
    main()
