"""Retention over a period: whether next turns come before kept blocks are let go, and what keeping them costs."""

from __future__ import annotations

import streamlit as st

from turnscope.store import retention_queries
from turnscope_app import (
    controls,
    data,
    drawings,
    frames,
    narrowing,
    period_charts,
    period_data,
    retention_frames,
    steps,
    tables,
)

store = data.store()
totals = data.totals(store)
controls.head("Retention", page="retention")
if totals.turns == 0:
    controls.nothing_yet()
st.markdown(
    "When an answer is done, the server that wrote it (decode engine) can **keep** its memory for a while (a hold), so "
    "that the session's next turn can fetch it back. Kept too short, turns come too late; kept too long, memory is "
    "missing for others."
)
narrowed = narrowing.bar(store, totals, page="retention")
found = period_data.retention(store, narrowed.asked, narrowed.step_ns, narrowed.newest_ns)
gaps = retention_frames.by_filling(found[retention_queries.GAPS])
fates = retention_frames.fates(found[retention_queries.FATES])
if not gaps and not fates:
    if narrowed.filtered:
        controls.nothing_here()
    st.info(
        "No turn was followed by another, and nothing was seen to be kept for a next one. Keeping is switched on by "
        "`bidirectional_kv_xfer` on both engines, and seen by the decode engine's hook: `turnscope doctor` says which "
        "is missing.",
        icon=":material/help:",
    )
    st.stop()
limits = retention_frames.limits(found[retention_queries.GAPS])
tables.cards(retention_frames.cards(gaps, limits, fates), page="retention")
st.markdown(retention_frames.sentence(gaps, fates))
for action in retention_frames.remedies(gaps, limits, fates):
    st.markdown(controls.owned(action))

left, right = st.columns(2)
with left:
    st.subheader(
        "Would the next turn have come?",
        anchor=False,
        help="Which share of next turns had come after a pause of so long. Where a curve crosses the time limit, so "
        "many come in time; further right, so many a longer limit would reach. Pauses are measured, what filled them "
        "is inferred.",
    )
    curve = retention_frames.arrived(found[retention_queries.GAPS])
    if curve.empty:
        st.info("No turn was followed by another one in this period.", icon=":material/help:")
    else:
        drawings.chart(retention_frames.arrival(curve, limits), key="retention_arrival")
with right:
    st.subheader(
        "What was kept, over time",
        anchor=False,
        help=f"On servers that write answers (decode engines), on average in {steps.named(narrowed.step_ns)}, by how "
        f"it ended. What is not known to "
        "have ended is drawn until its time limit.",
    )
    above = st.container()
    unit = st.segmented_control(
        "Memory in",
        list(retention_frames.UNITS),
        default="Tokens",
        required=True,
        key="retention_unit",
        bind="query-params",
        label_visibility="collapsed",
    )
    # An address that names none chooses nothing, although one is required.
    unit = unit or "Tokens"
    held = retention_frames.held(found[retention_queries.COURSE], retention_frames.UNITS[unit], narrowed.step_ns)
    if held.empty:
        above.info(
            "Not measured: it takes the hook on every server that writes answers (decode engine).",
            icon=":material/help:",
        )
    else:
        with above:
            drawings.chart(
                period_charts.stacked(
                    held, retention_frames.END_SHADES, title=f"{unit} kept, on average", unit=unit, share=False
                ),
                key="retention_held",
            )

if gaps:
    st.subheader("Pauses between turns", anchor=False)
    tables.show(frames.of(gaps, retention_frames.GAPS), retention_frames.GAPS, key="retention_gaps", pinned="name")
    controls.download(found[retention_queries.GAPS], "pauses", page="retention")
if fates:
    st.subheader("What became of what was kept", anchor=False)
    tables.show(frames.of(fates, retention_frames.FATES), retention_frames.FATES, key="retention_fates", pinned="fate")
    controls.download(found[retention_queries.FATES], "kept", page="retention")
