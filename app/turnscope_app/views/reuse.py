"""Reuse over a period: where prompts came from, what was computed again and why, and what fetching gave and cost."""

from __future__ import annotations

import streamlit as st

from turnscope_app import (
    controls,
    data,
    drawings,
    frames,
    narrowing,
    pages,
    period_charts,
    period_data,
    reuse_frames,
    steps,
    tables,
    text,
)

store = data.store()
totals = data.totals(store)
controls.head("Reuse", page="reuse")
if totals.turns == 0:
    controls.nothing_yet()
st.markdown(
    "An agent sends its whole conversation again with every turn. What the model server still has of it need not be "
    "computed again: the server that reads prompts (prefill engine) has it in its **own memory**, or it is **fetched "
    "back** from the server that writes answers (decode engine), which "
    "kept it."
)
narrowed = narrowing.bar(store, totals, page="reuse")
balance, *by_engine = period_data.balance(store, narrowed.asked).to_pylist()
if not balance["turns"]:
    controls.nothing_here()

course = period_data.reuse_course(store, narrowed.asked, narrowed.step_ns)
left, right = st.columns(2)
with left:
    st.subheader(
        "Where prompts came from",
        anchor=False,
        help="Turns by path: what the reused part of their prompt came from. Measured by the engines' hooks.",
    )
    found = reuse_frames.paths(course, narrowed.step_ns)
    drawings.chart(
        period_charts.stacked(
            found, reuse_frames.PATH_SHADES, title=f"Turns in {steps.named(narrowed.step_ns)}", unit="Turns"
        ),
        key="reuse_paths",
    )
with right:
    st.subheader(
        "What was in the way",
        anchor=False,
        help="Turns by the reason why no more was fetched back; turns that nothing was in the way of are left out. "
        f"The stronger, the more turns in {steps.named(narrowed.step_ns)}.",
    )
    found = reuse_frames.obstacles(course, narrowed.step_ns)
    if found.empty:
        st.success("Nothing was in the way: all that could be fetched back was.", icon=":material/check_circle:")
    else:
        drawings.chart(reuse_frames.in_the_way(found), key="reuse_obstacles")

st.subheader("Computed again, and need not have been", anchor=False)
avoidable = period_data.avoidable(store, narrowed.asked)
tables.cards(reuse_frames.avoidable_cards(avoidable, balance), page="reuse_avoidable")
if avoidable.num_rows:
    axis = st.segmented_control(
        "Ranked by", list(reuse_frames.AXES), default="Reason", required=True, key="reuse_axis", bind="query-params"
    )
    # An address that names none chooses nothing, although one is required.
    rows = reuse_frames.avoidable(avoidable, reuse_frames.AXES[axis or "Reason"])
    tables.show(frames.of(rows, reuse_frames.AVOIDABLE), reuse_frames.AVOIDABLE, key="reuse_ranked", pinned="name")
    controls.download(avoidable, "avoidable", page="reuse")
elif not balance["split_turns"]:
    st.info(
        "Not measured: it takes digests of prompts and answers, which the hooks of both engines make by default "
        "(`TURNSCOPE_DIGESTS`). `turnscope doctor` says what is missing.",
        icon=":material/help:",
    )

st.subheader("What fetching gave, and what it cost", anchor=False)
unjudged = reuse_frames.not_judged(balance)
if unjudged:
    st.caption(unjudged)
left, right = st.columns(2)
with left:
    st.markdown("**For it**")
    tables.cards(reuse_frames.gains(balance), page="reuse_gains")
with right:
    st.markdown("**Against it**")
    tables.cards(reuse_frames.losses(balance), page="reuse_losses")
if len(by_engine) > 1:
    tables.show(
        frames.of(by_engine[: data.LIMIT], reuse_frames.ENGINES),
        reuse_frames.ENGINES,
        key="reuse_engines",
        pinned="prefill_engine",
    )

worst, total = period_data.worst(store, narrowed.asked)
if total:
    st.subheader("Turns that fetching cost something", anchor=False)
    st.caption(f"{text.shown_of(worst.num_rows, total, 'turn')} The costliest first. Click one to open it.")
    row = tables.choose(
        frames.of(worst.to_pylist(), reuse_frames.WORST), reuse_frames.WORST, key="reuse_worst", pinned="session"
    )
    controls.download(worst, "worst", page="reuse")
    if row is not None:
        chosen = worst.slice(row, 1).to_pylist()[0]
        st.switch_page(pages.SESSION, query_params=pages.turn_link(chosen["session_id"], chosen["turn_index"]))
