"""Streamlit's own command line, with what the pages need imported before the port answers.

Streamlit imports a page's modules when the first person opens it, who would wait for pandas and DuckDB.
"""

from __future__ import annotations

import sys

from streamlit.web.cli import main

from turnscope.store import StoreReader
from turnscope_app import charts, frames, tables

WARM = (StoreReader, charts, frames, tables)

if __name__ == "__main__":
    sys.argv[0] = "streamlit"
    main()
