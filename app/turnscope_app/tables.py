"""Drawing a frame as a table: headings, help and units from ``columns``, missing values in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pandas as pd
import streamlit as st

from turnscope_app.columns import Column, Kind
from turnscope_app.words import NOT_MEASURED

_TALL: Final = 65
"""Pixels: the least at which Streamlit wraps text."""


def config(columns: dict[str, Column], *, pinned: str | None = None) -> dict[str, Any]:
    """Streamlit's configuration of these columns; ``pinned`` stays in view when a person scrolls sideways."""
    return {name: _config(column, pinned=name == pinned) for name, column in columns.items()}


def _config(column: Column, *, pinned: bool) -> Any:
    common: dict[str, Any] = {
        "label": column.heading,
        "help": column.help,
        "pinned": pinned or None,
        "width": column.width,
    }
    made: dict[Kind, Callable[[], Any]] = {
        Kind.TEXT: lambda: st.column_config.TextColumn(**common),
        Kind.LIST: lambda: st.column_config.ListColumn(**common),
        Kind.COUNT: lambda: st.column_config.NumberColumn(**common, format="localized"),
        Kind.TOKENS: lambda: st.column_config.NumberColumn(**common, format="localized"),
        Kind.BYTES: lambda: st.column_config.NumberColumn(**common, format="bytes"),
        Kind.MS: lambda: st.column_config.NumberColumn(**common, format="%.1f"),
        Kind.SECONDS: lambda: st.column_config.NumberColumn(**common, format="%.1f"),
        Kind.TIME: lambda: st.column_config.DatetimeColumn(**common, format="YYYY-MM-DD HH:mm:ss", timezone="UTC"),
        Kind.SHARE: lambda: st.column_config.ProgressColumn(**common, format="%.0f %%", min_value=0, max_value=100),
    }
    return made[column.kind]()


def draw(frame: pd.DataFrame, columns: dict[str, Column], *, key: str, tall: bool = False) -> None:
    """A table to read, at its full height; in ``tall`` rows long text is wrapped."""
    st.dataframe(
        frame,
        column_config=config(columns),
        height="content",
        row_height=_TALL if tall else None,
        column_order=list(columns),
        hide_index=True,
        placeholder=NOT_MEASURED,
        key=key,
    )


def choose(
    frame: pd.DataFrame,
    columns: dict[str, Column],
    *,
    key: str,
    pinned: str | None = None,
    on_select: Callable[[], None] | None = None,
) -> int | None:
    """A table to choose a row from with a click anywhere on it; the row's position, or None."""
    event: Any = st.dataframe(
        frame,
        column_config=config(columns, pinned=pinned),
        column_order=list(columns),
        hide_index=True,
        placeholder=NOT_MEASURED,
        on_select=on_select or "rerun",
        selection_mode="single-cell",
        key=key,
    )
    return chosen(event)


def chosen(event: Any) -> int | None:
    """The row in a table's selection, or None."""
    cells = event["selection"]["cells"]
    return int(cells[0][0]) if cells else None
