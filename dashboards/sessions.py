"""Sessions: what metrics can say of them. One by one they are in the explorer; their ids are never labels."""

from __future__ import annotations

from typing import Final

from dashboards.panels import Page, Panel, Query, Row, sessions_with
from dashboards.queries import increase, rate, share

ROW: Final = Row(
    "Sessions",
    (
        Panel(
            title="Sessions begun",
            about="First turns that a proxy saw, in the time shown.",
            unit="turns",
            queries=(Query(increase("turnscope_turns_total", reason="first_turn")),),
            view="figure",
            width=6,
            explorer=sessions_with(sort="Latest activity"),
        ),
        Panel(
            title="Turns that continue a session",
            about="Turns known to continue an earlier one, in the time shown.",
            unit="turns",
            queries=(Query(increase("turnscope_followup_turns_total")),),
            view="figure",
            width=6,
        ),
        Panel(
            title="Share of opportunities taken",
            about="Of turns that continue another, and for which D held at least the threshold more than P had: those "
            "that fetched it.",
            unit="ratio",
            queries=(
                Query(
                    share(
                        increase("turnscope_followup_turns_total", opportunity="taken"),
                        increase("turnscope_followup_turns_total", opportunity='=~"taken|missed"'),
                    )
                ),
            ),
            view="figure",
            width=6,
        ),
        Panel(
            title="Turns without a session id",
            about="Their client sends none: they can reuse nothing. Send the header X-Session-ID.",
            unit="turns",
            queries=(Query(increase("turnscope_turns_total", reason="no_session_id")),),
            view="figure",
            width=6,
            explorer=sessions_with(reason="no_session_id"),
        ),
        Panel(
            title="Turns sent again",
            about="retry: an earlier turn of the session had failed. fork: it had been answered, this is a "
            "regeneration. Inferred from the lengths of messages and prompt.",
            unit="turns/s",
            queries=(Query(rate("turnscope_repeated_turns_total", "kind"), "{{kind}}"),),
        ),
        Panel(
            title="Turns whose session lost what was kept for it",
            about="By reason: the proxy forgot the handle, D gave the blocks up, an engine restarted, or a sibling or "
            "retry took them.",
            unit="turns/s",
            queries=(
                Query(
                    rate(
                        "turnscope_turns_total",
                        "reason",
                        reason='=~"proxy_entry_expired|handle_not_given|declined_expired|holder_lost|'
                        'handle_consumed_by_retry|handle_taken_by_sibling|previous_turn_aborted"',
                    ),
                    "{{reason}}",
                ),
            ),
            view="stacked",
        ),
    ),
)

TIME: Final = Row(
    "Where their time went",
    (
        Panel(
            title="Sessions that came to rest",
            about="Nothing came of them for --session-rest-seconds: then their time and their tasks are counted.",
            unit="sessions",
            queries=(Query(increase("turnscope_sessions_total")),),
            view="figure",
            width=6,
        ),
        Panel(
            title="Tasks by how they ended",
            about="From a user's message to the first answer that asks for no tool.",
            unit="tasks",
            queries=(Query(increase("turnscope_tasks_total", "outcome"), "{{outcome}}"),),
            view="figure",
            width=18,
        ),
        Panel(
            title="Time of sessions by what it was spent on",
            about="The parts are disjoint and sum to the sessions' whole time. Reuse can shorten input processing "
            "only; user wait is nobody's to shorten.",
            unit="seconds",
            queries=(Query(increase("turnscope_session_seconds_total", "part"), "{{part}}"),),
            view="bars",
        ),
        Panel(
            title="Share of sessions' time by how it is known",
            about="measured: by requests and agents' spans. inferred: from what came before and after. none: nothing "
            "tells what it was.",
            unit="ratio",
            queries=(
                Query(
                    f"{increase('turnscope_session_seconds_total', 'evidence')} / on () group_left () "
                    f"({increase('turnscope_session_seconds_total')} > 0)",
                    "{{evidence}}",
                ),
            ),
            view="bars",
        ),
    ),
)

PAGE: Final = Page(
    "sessions",
    "turnscope: Sessions",
    "What metrics can say of sessions. Single ones are in the explorer.",
    (ROW, TIME),
)
