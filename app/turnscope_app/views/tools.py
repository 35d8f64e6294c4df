"""Tools and tasks over a period: what agents waited for, how it ended, and how long users waited for the whole."""

from __future__ import annotations

import streamlit as st

from turnscope_app import controls, data, drawings, frames, narrowing, period_data, tables, text, tool_frames

store = data.store()
totals = data.totals(store)
controls.head("Tools and tasks", page="tools")
if totals.turns == 0 and data.bounds(store)[0] == 0:
    controls.nothing_yet()
st.markdown(
    "Between model calls an agent runs **tools**. A **task** goes from a user's message to the first answer that asks "
    "for no tool: a faster first token is not yet a faster task, so both stand side by side."
)
narrowed = narrowing.bar(store, totals, page="tools")
applications, listed = period_data.applications(store, narrowed.asked)
tools, total = period_data.tools(store, narrowed.asked)
if not listed and not total:
    if narrowed.filtered:
        controls.nothing_here()
    st.info(
        "No session is summed up yet: turns without a session id belong to no task. Sessions are summed up within a "
        "minute of their last turn.",
        icon=":material/hourglass_empty:",
    )
    st.stop()
rows = applications.to_pylist()
every = rows[0] if rows else dict.fromkeys(applications.column_names)

st.subheader("Tools", anchor=False)
tables.cards(tool_frames.cards(every, tools.to_pylist()), page="tools")
if total:
    left, right = st.columns([2, 3])
    with left:
        drawings.chart(tool_frames.bars(tool_frames.longest(tools)), key="tools_longest")
    with right:
        tables.show(
            frames.of(tools.to_pylist(), tool_frames.TOOLS), tool_frames.TOOLS, key="tools_table", pinned="tool"
        )
        st.caption(text.shown_of(tools.num_rows, total, "row"))
        controls.download(tools, "tools", page="tools")
else:
    st.info(
        "No agent tells of its tools here: which tool ran, for how long and whether it failed is not known, only that "
        "the model was waited for in between. An agent with OpenTelemetry sends that with four lines of its "
        "environment; names and times are kept, never what a tool was given or answered.",
        icon=":material/build:",
    )
    st.code(controls.SPANS, language="bash")

st.subheader("Tasks", anchor=False)
tables.cards(tool_frames.task_cards(every), page="tools_tasks")
course = tool_frames.course(period_data.task_course(store, narrowed.asked, narrowed.step_ns))
if course.empty:
    st.info(
        "No task was seen: it takes the proxy's hook, which tells who wrote a request's last message, or an agent's "
        "own spans.",
        icon=":material/help:",
    )
else:
    drawings.chart(tool_frames.waits(course), key="tools_waits")
    # It reads every turn of the period: asked for once somebody opens it.
    places = st.expander("By turn of the session, and by length of the prompt", key="tools_places", bind="query-params")
    if places.open:
        with places:
            st.caption("Does a longer prompt, or a later turn, mean a longer wait, and for the whole task as well?")
            told = period_data.latencies(store, narrowed.asked)
            every_place = told.to_pylist()
            for columns in (tool_frames.BY_TURN, tool_frames.BY_PROMPT):
                name = columns[0].key
                of_these = [row for row in every_place if row[name] is not None]
                tables.show(frames.of(of_these, columns), columns, key=f"tools_{name}", pinned=name)
            controls.download(told, "latencies", page="tools")
if any(row["application"] for row in rows):
    st.markdown("**By application and version**")
    tables.show(
        frames.of(rows, tool_frames.APPLICATIONS),
        tool_frames.APPLICATIONS,
        key="tools_applications",
        pinned="application",
    )
    st.caption(text.shown_of(len(rows) - 1, listed - 1, "application version"))
    controls.download(applications, "applications", page="tools")

evaluated, kinds = period_data.evaluated(store, narrowed.asked)
st.subheader("Evaluations", anchor=False)
if kinds:
    st.caption("As spans carry them. They stand beside the outcome of a task and do not decide it.")
    tables.show(
        frames.of(evaluated.to_pylist(), tool_frames.EVALUATIONS),
        tool_frames.EVALUATIONS,
        key="tools_evaluations",
        pinned="name",
    )
    controls.download(evaluated, "evaluations", page="tools")
else:
    st.caption(
        "No span carries an evaluation's result. An evaluator that writes `gen_ai.evaluation.name` with a score or a "
        "label on a span of the session has it shown here."
    )
