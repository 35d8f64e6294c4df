"""Latency: how long turns take, what their time to first token is made of, and how busy engines are meanwhile."""

from __future__ import annotations

from typing import Final

from dashboards.panels import QUANTILES, Page, Panel, Query, Row
from dashboards.queries import mean, now, quantile, rate

TURNS: Final = Row(
    "What the client waits for",
    (
        Panel(
            title="Time to first token",
            about="From the client's request reaching the proxy to its first content byte. Needs the proxy's hook. A "
            "point on the curve is a turn: click it to open its trace.",
            alerts=("TurnscopeTtftRegressed",),
            unit="seconds",
            queries=tuple(Query(quantile(q, "turnscope_ttft_seconds"), name, exemplars=True) for q, name in QUANTILES),
        ),
        Panel(
            title="Duration of a turn",
            about="From the client's request reaching the proxy to its last byte.",
            unit="seconds",
            queries=tuple(
                Query(quantile(q, "turnscope_turn_duration_seconds"), name, exemplars=True) for q, name in QUANTILES
            ),
        ),
        Panel(
            title="Time to first token by where the prompt came from, 95 of 100",
            about="Compare like with like: turns that fetch tend to have longer prompts.",
            unit="seconds",
            queries=(Query(quantile(0.95, "turnscope_ttft_seconds", "path"), "{{path}}", exemplars=True),),
        ),
        Panel(
            title="Duration of a turn by where the prompt came from, 95 of 100",
            about="From the client's request reaching the proxy to its last byte.",
            unit="seconds",
            queries=(Query(quantile(0.95, "turnscope_turn_duration_seconds", "path"), "{{path}}", exemplars=True),),
        ),
        Panel(
            title="Time to first token by the prompt's length, median",
            about="In classes of tokens: comparable between days on which conversations were not equally long.",
            unit="seconds",
            queries=(Query(quantile(0.5, "turnscope_ttft_context_seconds", "context"), "{{context}} tokens"),),
            width=24,
        ),
    ),
)

TASKS: Final = Row(
    "What the user waits for",
    (
        Panel(
            title="First token of a task",
            about="From the user's message to the first token of the task's first answer. Counted when its session has "
            "come to rest (--session-rest-seconds), so these curves come later than those above.",
            unit="seconds",
            queries=tuple(Query(quantile(q, "turnscope_task_first_token_seconds"), name) for q, name in QUANTILES),
        ),
        Panel(
            title="Whole task",
            about="From the user's message to the end of the first answer that asks for no tool, of completed tasks. A "
            "faster first token is not a faster task: most of it may be tools and generation.",
            unit="seconds",
            queries=tuple(Query(quantile(q, "turnscope_task_latency_seconds"), name) for q, name in QUANTILES),
        ),
    ),
)

PARTS: Final = Row(
    "What the time to first token is made of",
    (
        Panel(
            title="Parts of the average time to first token",
            about="They add up to it: in the proxy, queueing on P and D, the reverse fetch, computing the prompt, the "
            "handoff, D's first step. unattributed is what nothing explains.",
            unit="seconds",
            queries=(
                Query(
                    f"{rate('turnscope_ttft_part_seconds_sum', 'part')} / on () group_left () "
                    f"({rate('turnscope_ttft_seconds_count')} > 0)",
                    "{{part}}",
                ),
            ),
            view="stacked",
        ),
        Panel(
            title="Each part where it was measured, 95 of 100",
            about="Of turns that had this part: a turn that fetched nothing has no reverse_fetch.",
            unit="seconds",
            queries=(Query(quantile(0.95, "turnscope_ttft_part_seconds", "part"), "{{part}}"),),
        ),
        Panel(
            title="Prefill on P",
            about="From P accepting the request to its end, queueing and the reverse fetch included, on average.",
            unit="seconds",
            queries=(Query(mean("turnscope_prefill_seconds", "engine", "path"), "{{engine}} {{path}}"),),
        ),
        Panel(
            title="Compute time saved and lost by fetching",
            about="Seconds of prefill saved, or lost, a second of serving: an estimate by each engine's own measured "
            "prefills. 100 % would be one engine's whole time.",
            alerts=("TurnscopeFetchSlowerThanRecompute",),
            unit="ratio",
            queries=(
                Query(rate("turnscope_fetch_gain_seconds_total", "engine"), "{{engine}} gained"),
                Query(rate("turnscope_fetch_loss_seconds_total", "engine"), "{{engine}} lost"),
            ),
        ),
    ),
)

ENGINES: Final = Row(
    "How busy the engines are, as they say themselves (needs --engine-metrics)",
    (
        Panel(
            title="Requests running",
            about="An engine that cannot be read has no curve.",
            unit="requests",
            queries=(Query(now("turnscope_engine_requests_running", "engine"), "{{engine}}"),),
            width=8,
        ),
        Panel(
            title="Requests waiting",
            about="They wait for memory or for a place in a step: time to first token grows with them.",
            unit="requests",
            queries=(Query(now("turnscope_engine_requests_waiting", "engine"), "{{engine}}"),),
            width=8,
        ),
        Panel(
            title="Preemptions",
            about="Requests put back for want of memory. On D: what is kept for next turns may be too much.",
            unit="requests/s",
            queries=(Query(rate("turnscope_engine_preemptions_total", "engine"), "{{engine}}"),),
            width=8,
        ),
        Panel(
            title="Tokens generated",
            about="Tokens of answers, all samples of a turn together.",
            unit="tokens/s",
            queries=(Query(rate("turnscope_output_tokens_total", "engine"), "{{engine}}"),),
            width=24,
        ),
    ),
)

PAGE: Final = Page(
    "latency",
    "turnscope: Latency",
    "How long turns take, what their time to first token is made of, and how busy engines are meanwhile.",
    (TURNS, TASKS, PARTS, ENGINES),
)
