"""The period's answer: where the time went, whether reuse would help, and what to do and to look at next."""

from __future__ import annotations

import streamlit as st

from turnscope.measures.verdict import separated
from turnscope.model import SESSION_ADVICE
from turnscope_app import (
    advice,
    answers,
    cards,
    columns,
    controls,
    data,
    drawings,
    frames,
    pages,
    part_charts,
    periods,
    tables,
    text,
)

store = data.store()
count, first_ns, last_ns = data.bounds(store)

controls.head("Where the agents' time goes", page="home")
if count == 0:
    totals = data.totals(store)
    if totals.turns == 0:
        controls.nothing_yet()
    st.info(
        f"{text.turns(totals.turns)} came, none of them with a session id: where agents' time goes is unknown. "
        f"{SESSION_ADVICE}",
        icon=":material/help:",
    )
    st.page_link(pages.SESSION, label="To these turns", query_params=pages.session_link(None))
    st.stop()

names = data.names(store)
controls.period_asked("home")
with st.container(horizontal=True, vertical_alignment="bottom"):
    name = st.selectbox(
        "Period",
        periods.NAMES,
        index=periods.NAMES.index(periods.usual(first_ns, last_ns)),
        key="home_period",
        bind="query-params",
        width=220,
        help="Sessions are counted in the period in which they ended, back from the newest one.",
    )
    application = None
    if "applications" in names:
        application = controls.choice(
            "Application", names["applications"], key="home_application", shown=text.harmless, nothing="all", width=320
        )
shown = None if application is None else text.harmless(application)
period = periods.asked(name, first_ns, last_ns, application)
since_ns, until_ns = dict(period)["since_ns"], dict(period)["until_ns"]
figures = data.figures(store, period)
st.caption(
    f"{text.sessions(figures.sessions)}, {text.turns(figures.turns)}; ended from {text.when(since_ns)} to "
    f"{text.when(until_ns)}."
)

with st.container(border=True, key="home_answer"):
    st.markdown(answers.time(figures))
    st.markdown(answers.repeated(figures))
    st.markdown(answers.ceiling(figures), help=answers.WORKING)
    known = answers.measured(figures)
    if known is not None:
        st.caption(known[0], help=known[1])
parts = part_charts.parts_frame(figures)
if not parts.empty:
    drawings.chart(part_charts.parts(parts), key="home_parts")
    tables.parts(cards.parts(figures), page="home")
if figures.tool_wait_ns and not separated(figures):
    with st.expander("Tools or application? Four lines of the agent's environment tell them apart"):
        st.code(controls.SPANS, language="bash")
        st.caption("Any OpenTelemetry instrumentation of the agent sends its spans there; no content is kept.")

sessions = data.telling(store, period)
left, right = st.columns([3, 2])
with left, st.container(border=True, height="stretch", key="home_verdict"):
    st.subheader("What to do next", anchor=False)
    for number, step in enumerate(advice.plan(figures, sessions.get("worst")), 1):
        st.markdown(f"**{number}. {step.title}.** {text.escaped(step.why)}")
        for action in step.actions:
            st.markdown(controls.owned(action))
        st.page_link(
            f"views/{step.page}.py",
            label="Begin there",
            icon=":material/arrow_forward:",
            query_params={**pages.same_period(step.page, name, shown), **step.filters},
        )
with right:
    with st.container(border=True, key="home_reuse"):
        answer = answers.reuse_answer(figures)
        st.subheader("Would reuse help?", anchor=False)
        st.markdown(f":{answer.colour}-badge[{answer.short}] {answer.why}", help=answers.WORKING)
        tables.cards(cards.reuse(figures), page="home_reuse")
    needed = advice.warnings(figures)
    if needed:
        with st.container(border=True, height="stretch", key="home_needed"):
            st.subheader("Needs someone", anchor=False)
            for warning in needed:
                st.markdown(f":material/warning: {warning.said}  \n{controls.owned(warning.action)}")
                st.page_link(
                    pages.SESSIONS,
                    label="Show them",
                    icon=":material/arrow_forward:",
                    query_params={**pages.same_period("sessions", name, shown), "sessions_check": warning.check},
                )

if sessions:
    st.subheader("Sessions to open", anchor=False)
    for column, (what, (title, why)) in zip(st.columns(3), answers.TELLING.items(), strict=True):
        if what in sessions:
            session = sessions[what]
            with column, st.container(border=True, height="stretch"):
                st.markdown(f"**{title}**  \n:small[{why}]")
                st.page_link(
                    pages.SESSION,
                    label=text.escaped(text.named(session.applications, session.agents, session.session_id)),
                    icon=":material/open_in_new:",
                    query_params=pages.session_link(session.session_id),
                )
                bar = part_charts.parts_frame(session)
                if not bar.empty:
                    drawings.chart(part_charts.parts(bar, height=40), key=f"home_{what}")
                st.caption(answers.session(session))

before = periods.before(name, period)
if before is not None:
    earlier = data.figures(store, before)
    st.subheader("Against the period before", anchor=False)
    if earlier.sessions:
        tables.changes(cards.changes(figures, earlier), page="home_changes")
    else:
        st.caption("No session ended in the period before: there is nothing to compare with.")

course = data.course(store, period)
if len(course) > 1:
    left, right = st.columns(2)
    with left:
        st.subheader("Where the time went, over the period", anchor=False)
        drawings.chart(part_charts.course(part_charts.course_frame(course, since_ns, until_ns)), key="home_course")
    with right:
        st.subheader("What people wait for", anchor=False, help="Half of tasks and first tokens took no longer.")
        drawings.chart(part_charts.latency(part_charts.latency_frame(course, since_ns, until_ns)), key="home_latency")

found = data.by_application(store, period)
if found:
    st.subheader("By application", anchor=False)
    nameless = figures.sessions - figures.spanned_sessions
    if nameless and application is None:
        st.caption(
            f"{nameless:,} of {text.sessions(figures.sessions)} {'is' if nameless == 1 else 'are'} in no row: no spans "
            "of an agent came, and only those name its application (`OTEL_SERVICE_NAME`)."
        )
    st.dataframe(
        frames.applications(found),
        column_config=tables.config(columns.APPLICATIONS, pinned=("application",)),
        hide_index=True,
        key="home_applications",
    )
    controls.download(frames.exported(found), "applications", page="home")
