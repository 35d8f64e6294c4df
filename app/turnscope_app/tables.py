"""Drawing frames and figures: headings, help and units from ``columns``, missing values in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from turnscope.semconv import Part
from turnscope_app import colours, words
from turnscope_app.cards import Card, Change
from turnscope_app.columns import Column, Kind


def cards(shown: Iterable[Card], *, page: str) -> None:
    """Figures side by side, as many as there is room for: ``style.css`` makes a grid of them."""
    with st.container(key=f"{page}_cards"):
        for card in shown:
            told = words.explained(card.help, card.known)
            st.metric(card.label, card.value, help=told, border=True, height="stretch")


def parts(shown: Mapping[Part, Card], *, page: str) -> None:
    """The legend of a bar of parts: ``style`` gives each its colour."""
    with st.container(key=f"{page}_parts_cards"):
        for part, card in shown.items():
            with st.container(key=f"{page}_part_{part}"):
                st.metric(
                    card.label,
                    card.value,
                    card.more,
                    help=card.help,
                    delta_color="off",
                    delta_arrow="off",
                    border=True,
                    height="stretch",
                )


def part_style() -> str:
    """The colours of ``parts`` as CSS."""
    rules = (
        f'[class*="_part_{part}"] [data-testid=stMetric] {{border-left: 0.4rem solid {colour}}}'
        for part, colour in colours.PARTS.items()
    )
    return f"<style>{''.join(rules)}</style>"


def changes(shown: Iterable[Change], *, page: str) -> None:
    """Figures side by side, each with how much it changed; no arrow says good or bad where neither is."""
    with st.container(key=f"{page}_cards"):
        for card in shown:
            same = card.delta is None or not any(digit in card.delta for digit in "123456789")
            colour: Any = "off" if same else {None: "off", True: "normal", False: "inverse"}[card.more_is_good]
            delta = "no change" if same and card.delta is not None else card.delta
            arrow: Any = "off" if same else "auto"
            st.metric(
                card.label, card.value, delta, delta_color=colour, delta_arrow=arrow, border=True, height="stretch"
            )


def config(columns: Sequence[Column], *, pinned: Sequence[str] = ()) -> dict[str, Any]:
    """Streamlit's configuration of these columns; ``pinned`` ones stay in view when a person scrolls sideways."""
    return {column.key: _config(column, pinned=column.key in pinned) for column in columns}


def _config(column: Column, *, pinned: bool) -> Any:
    common: dict[str, Any] = {
        "label": column.heading,
        "help": column.help,
        "pinned": pinned or None,
        "width": column.pixels,
    }
    made: dict[Kind, Callable[[], Any]] = {
        Kind.LINK: lambda: st.column_config.LinkColumn(**common, display_text="Open", validate="^https://"),
        Kind.LIST: lambda: st.column_config.ListColumn(**common),
        Kind.COUNT: lambda: st.column_config.NumberColumn(**common, format="localized"),
        Kind.NUMBER: lambda: st.column_config.NumberColumn(**common, format="%.2f"),
        Kind.TOKENS: lambda: st.column_config.NumberColumn(**common, format="localized"),
        Kind.BYTES: lambda: st.column_config.NumberColumn(**common, format="bytes"),
        Kind.AMOUNT: lambda: st.column_config.NumberColumn(**common, format="localized"),
        Kind.MS: lambda: st.column_config.NumberColumn(**common, format="localized"),
        Kind.SECONDS: lambda: st.column_config.NumberColumn(**common, format="localized"),
        Kind.TIME: lambda: st.column_config.DatetimeColumn(**common, format="YYYY-MM-DD HH:mm:ss", timezone="UTC"),
        Kind.SHARE: lambda: st.column_config.ProgressColumn(
            **common, format="%.0f %%", min_value=0, max_value=100, color=column.colour
        ),
    }
    return made.get(column.kind, lambda: st.column_config.TextColumn(**common))()


def read(frame: pd.DataFrame, *, header: bool = True) -> None:
    """A table of sentences to read, wrapped to the width there is; its cells are Markdown."""
    st.table(frame, border="horizontal", hide_index=True, hide_header=not header)


def show(frame: pd.DataFrame, columns: Sequence[Column], *, key: str, pinned: str) -> None:
    """A table to look at and to sort."""
    st.dataframe(
        frame,
        column_config=config(columns, pinned=pinned),
        column_order=[column.key for column in columns],
        hide_index=True,
        placeholder=words.NOT_MEASURED,
        key=key,
    )


def choose(
    frame: pd.DataFrame,
    columns: Sequence[Column],
    *,
    key: str,
    pinned: Sequence[str] = (),
    on_select: Callable[[], None] | None = None,
) -> int | None:
    """A table to choose a row from with a click anywhere on it; the row's position, or None."""
    event: Any = st.dataframe(
        frame,
        column_config=config(columns, pinned=pinned),
        column_order=[column.key for column in columns],
        hide_index=True,
        placeholder=words.NOT_MEASURED,
        on_select=on_select or "rerun",
        selection_mode="single-cell",
        key=key,
    )
    return chosen(event)


def chosen(event: Any) -> int | None:
    """The row in a table's selection, or None."""
    cells = event["selection"]["cells"]
    return int(cells[0][0]) if cells else None
