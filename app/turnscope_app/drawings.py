"""Drawing charts on a page."""

from __future__ import annotations

from typing import Any, Final, TypeAlias, cast

import altair as alt
import streamlit as st

_Chart: TypeAlias = alt.Chart | alt.LayerChart


class _Unchecked:
    """A chart that is not compared with Vega-Lite's schema when a page asks for its specification: that takes longer
    than all else a page does, and every visit anew. Tests compare the charts."""

    def __init__(self, made: _Chart) -> None:
        self._made: Final = made

    def to_dict(self) -> dict[str, Any]:
        spec: dict[str, Any] = self._made.to_dict(validate=False)
        return spec


def chart(made: _Chart, *, key: str) -> None:
    """The chart, as wide as there is room for."""
    st.altair_chart(cast(alt.Chart, _Unchecked(made)), key=key)
