"""Sessions: what metrics can say of them. One by one they are in the explorer; their ids are never labels."""

from __future__ import annotations

from typing import Final

from dashboards.panels import Page, Panel, Query, Row
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
            explorer="sessions_sort=Latest+activity",
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
            explorer="sessions_reason=no_session_id",
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

PAGE: Final = Page(
    "sessions",
    "turnscope: Sessions",
    "What metrics can say of sessions. Single ones are in the explorer.",
    (ROW,),
)
