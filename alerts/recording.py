"""The ratios that people quote, worked out once so that everybody quotes the same."""

from __future__ import annotations

from alerts.rule import Group, Recording

RATIOS = Group(
    name="turnscope-ratios",
    title="Ratios",
    rules=(
        Recording(
            record="engine:turnscope_reused_prompt_tokens:ratio_rate5m",
            expr="""\
(
  sum without (source) (rate(turnscope_prompt_tokens_total{source=~"local_hit|fetched|external"}[5m]))
  - rate(turnscope_suspect_tokens_total[5m])
)
/ (sum without (source) (rate(turnscope_prompt_tokens_total[5m])) > 0)""",
            says="Reuse ratio: the share of prompt tokens that the prefill engine did not have to compute. Tokens "
            "whose KV may be of other text are not counted as saved.",
        ),
        Recording(
            record="engine:turnscope_avoidable_recompute_tokens:ratio_rate5m",
            expr="""\
sum without (reason) (rate(turnscope_avoidable_recompute_tokens_total[5m]))
/ (sum without (source) (rate(turnscope_prompt_tokens_total{source=~"recomputed|new"}[5m])) > 0)""",
            says="Avoidable recompute ratio: of the prompt tokens that were computed and could be told apart, the "
            "share that their session had computed before.",
        ),
        Recording(
            record="engine:turnscope_fetch_efficiency:ratio_rate30m",
            expr="""\
(
  1
  + (rate(turnscope_fetch_gain_seconds_total[30m]) - rate(turnscope_fetch_loss_seconds_total[30m]))
  / (sum without (direction) (rate(turnscope_transfer_wall_seconds_sum{direction="reverse_fetch"}[30m])) > 0)
)
and
  sum without (worth) (rate(turnscope_fetches_total{worth!="unknown"}[30m]))
  >= 0.95 * sum without (worth) (rate(turnscope_fetches_total[30m]))""",
            says="Fetch efficiency: compute time saved over time spent fetching; below 1 computing would have been "
            "faster. Absent while more than one fetch in twenty has no estimate.",
        ),
        Recording(
            record="engine:turnscope_read_hold_byte_seconds:ratio_rate1h",
            expr="""\
sum without (kind, outcome) (rate(turnscope_hold_byte_seconds_total{kind="hold",outcome="read"}[1h]))
/ (sum without (kind, outcome) (rate(turnscope_hold_byte_seconds_total{kind="hold"}[1h])) > 0)""",
            says="Retention yield: of the byte-seconds that a decode engine spent on holds that ended, the share that "
            "a later turn read.",
        ),
        Recording(
            record="node:turnscope_fabric_agreed_bytes:ratio_rate30m",
            expr="""\
sum without (transport) (rate(turnscope_fabric_window_bytes_total{transport!="unknown"}[30m]))
/ (sum without (transport) (rate(turnscope_fabric_window_bytes_total[30m])) > 0)""",
            says="Fabric agreement: the share of NIXL's bytes in windows where the cards' counters account for them "
            "(EFA, TCP or neither within the node). 0 on nodes without EFA counters: nothing is told there.",
        ),
        Recording(
            record="engine:turnscope_rewritten_tokens:ratio_rate1h",
            expr="""\
sum without (instance) (rate(turnscope_rewritten_tokens_total[1h]))
/ (sum without (instance, source) (rate(turnscope_prompt_tokens_total{source=~"recomputed|new"}[1h])) > 0)""",
            says="Of the prompt tokens that were computed and could be told apart, the share that their session had "
            "seen before at another place: what an edited, stamped or compacted history costs. Over all sidecars of a "
            "job, so that it can be compared with the day before.",
        ),
        Recording(
            record="context:turnscope_ttft_seconds:median_rate1h",
            expr="""\
histogram_quantile(0.5, sum without (instance) (rate(turnscope_ttft_context_seconds_bucket[1h])))
and sum without (instance) (increase(turnscope_ttft_context_seconds_count[1h])) >= 20""",
            says="Median time to first token by the prompt's length, of lengths with at least 20 turns in the hour. "
            "Over all sidecars of a job, so that it can be compared with the day before.",
        ),
    ),
)
