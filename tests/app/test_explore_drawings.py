"""Charts are drawn as they were made, though nobody compares them with a schema in front of a person."""

from __future__ import annotations

import altair as alt
import pandas as pd
import pytest

from turnscope_app import drawings


def test_a_chart_is_drawn_as_it_was_made_and_not_compared_with_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    made = alt.Chart(pd.DataFrame({"a": [1, 2]})).mark_bar().encode(x="a:Q")
    shown: dict[str, object] = {}
    monkeypatch.setattr(
        "turnscope_app.drawings.st.altair_chart", lambda chart, key: shown.update({key: chart.to_dict()})
    )
    expected = made.to_dict()
    monkeypatch.setattr(alt.Chart, "validate", lambda *_, **__: pytest.fail("it was compared"), raising=False)
    drawings.chart(made, key="home_parts")
    assert shown == {"home_parts": expected}
