"""Do users wait longer than yesterday for the same?"""

from __future__ import annotations

from alerts.rule import TICKET, Alert, Group

LATENCY = Group(
    name="turnscope-latency",
    title="Latency",
    rules=(
        Alert(
            name="TurnscopeTtftRegressed",
            severity=TICKET,
            expr="""\
context:turnscope_ttft_seconds:median_rate1h
> 1.5 * context:turnscope_ttft_seconds:median_rate1h offset 1d
and
context:turnscope_ttft_seconds:median_rate1h
> 0.1 + context:turnscope_ttft_seconds:median_rate1h offset 1d""",
            wait="30m",
            wait_reason="The hour's median must stay there: a burst of load passes.",
            summary='Prompts of {{ $labels.context }} tokens wait {{ $value | printf "%.2f" }} s for the first token, '
            "at "
            "least half as long again as a day ago",
            description="The median time to first token of the last hour, compared with the same hour yesterday at "
            "equal prompt length: longer conversations do not explain it. Its parts (queue, fetch, prefill, handoff) "
            "tell where the time goes.",
        ),
    ),
)
