"""Sums over sessions' summaries as SQL: the columns of ``Figures``, for whatever sessions a question is about."""

from __future__ import annotations

from typing import Final

from turnscope.model.figures import JUDGED, KNOWN, SPARED, SUMMED

_MOST: Final = 2**63 - 1
"""Sums of absurd times are cut to what an integer holds."""
NEEDS: Final = ", ".join(
    (
        "session_id, started_ns, ended_ns, applications, agents, models, deployments, sources, tools, ttft_median_ns, "
        "task_latency_median_ns, main_reason, ceiling",
        *SUMMED,
        *KNOWN,
    )
)
"""What they are made of, and what a period's sessions are told by."""
COLUMNS: Final = ", ".join(
    (
        "count(*) AS sessions",
        "count_if(spans > 0)::BIGINT AS spanned_sessions",
        "count_if(tools IS NOT NULL)::BIGINT AS tooled_sessions",
        "count_if(list_contains(sources, 'proxy'))::BIGINT AS proxied_sessions",
        "count_if(suspicious_turns > 0)::BIGINT AS suspicious_sessions",
        "count_if(errors > 0)::BIGINT AS failing_sessions",
        *(f"least(coalesce(sum({name}), 0), {_MOST})::BIGINT AS {name}" for name in SUMMED),
        *(f"sum({name})::BIGINT AS {name}" for name in KNOWN),
        *(f"sum(ceiling.{name})::BIGINT AS {name}" for name in SPARED),
        *(f"coalesce(sum(ceiling.{name}), 0)::BIGINT AS {name}" for name in JUDGED),
        "coalesce(sum(ceiling.recomputed_tokens), 0)::BIGINT AS judged_tokens",
        "coalesce(bool_or(ceiling.transfer != 'measured'), false) AS assumed",
        "quantile_disc(wall_ns - user_wait_ns, 0.5) AS working_median_ns",
        "quantile_disc(ttft_median_ns, 0.5) AS ttft_median_ns",
        "quantile_disc(task_latency_median_ns, 0.5) AS task_latency_median_ns",
        "mode(main_reason) AS main_reason",
    )
)
