"""Reuse: which paths turns took and why, where prompt tokens came from, and what was computed twice."""

from __future__ import annotations

from typing import Final

from dashboards.panels import Page, Panel, Query, Row, sessions_with
from dashboards.queries import increase, positive, rate, share

TURNS: Final = Row(
    "Turns",
    (
        Panel(
            title="Turns by where their prompt came from",
            about="recompute: all of it was computed. local_hit: reused from P's own cache. reverse_fetch: from D. "
            "mixed: both. external_hit: from another store.",
            unit="turns/s",
            queries=(Query(rate("turnscope_turns_total", "path"), "{{path}}"),),
            view="stacked",
        ),
        Panel(
            title="Turns by why there was no (more) fetch",
            about="none: everything worth fetching was fetched. docs/reasons.md explains the others.",
            unit="turns/s",
            queries=(Query(positive(rate("turnscope_turns_total", "reason")), "{{reason}}"),),
            view="stacked",
        ),
        Panel(
            title="Missed opportunities",
            about="Turns that continue an earlier one: did D hold at least the threshold more of their prompt than P "
            "had? taken: yes, and it was fetched. missed: yes, and it was computed again. none: there was "
            "nothing to gain.",
            unit="turns/s",
            queries=(Query(rate("turnscope_followup_turns_total", "opportunity"), "{{opportunity}}"),),
            view="stacked",
        ),
        Panel(
            title="Answers with and without a handle",
            about="A handle in D's answer lets the next turn fetch. Streamed answers without one mean that no later "
            "turn can: many versions of vLLM leave it out of streams.",
            unit="answers/s",
            queries=(
                Query(
                    rate("turnscope_answers_total", "streamed", "handle"), "streamed: {{streamed}}, handle: {{handle}}"
                ),
            ),
            view="stacked",
            explorer=sessions_with(reason="no_handle_from_decode"),
        ),
    ),
)

TOKENS: Final = Row(
    "Prompt tokens",
    (
        Panel(
            title="Prompt tokens by source",
            about="What became of every prompt token on P. recomputed: computed before in this session. new: never "
            "seen before. computed: nothing tells these two apart.",
            unit="tokens/s",
            queries=(Query(rate("turnscope_prompt_tokens_total", "source"), "{{source}}"),),
            view="stacked",
        ),
        Panel(
            title="Tokens computed twice, by why they were not fetched",
            about="Prompt tokens computed although their session had computed them before: what better reuse could "
            "save at most. At least so many; only of turns whose digests came in time.",
            unit="tokens/s",
            queries=(Query(rate("turnscope_avoidable_recompute_tokens_total", "reason"), "{{reason}}"),),
            view="stacked",
        ),
        Panel(
            title="Tokens that moved or may be wrong",
            about="rewritten: new prompt tokens that their session had seen at another place (an early edit, a "
            "timestamp). suspect: reused tokens whose KV may be of other text; never count them as saved.",
            unit="tokens/s",
            queries=(
                Query(rate("turnscope_rewritten_tokens_total"), "rewritten"),
                Query(rate("turnscope_suspect_tokens_total"), "suspect"),
            ),
        ),
        Panel(
            title="Why P did not find it in its own cache",
            about="evicted: this P had computed it. other_worker: another P had. never_here: only D had it. none: P "
            "had it, or there was nothing.",
            unit="turns/s",
            queries=(Query(rate("turnscope_local_misses_total", "cause"), "{{cause}}"),),
            view="stacked",
        ),
    ),
)

EVIDENCE: Final = Row(
    "How far this can be trusted",
    (
        Panel(
            title="Share of turns with a reason",
            about="Of turns that both hooks told of: those whose evidence gave a reason other than unknown.",
            unit="ratio",
            queries=(
                Query(
                    share(
                        increase("turnscope_turns_explained_total", hooks="both", explained="yes"),
                        increase("turnscope_turns_explained_total", hooks="both"),
                    )
                ),
            ),
            view="figure",
            width=6,
        ),
        Panel(
            title="Turns by what tells how they continue",
            about="digests and first_turn: computed tokens are told apart into recomputed and new. All others are not.",
            unit="turns",
            queries=(Query(increase("turnscope_turns_continuity_total", "evidence"), "{{evidence}}"),),
            view="figure",
            width=18,
        ),
        Panel(
            title="Prompt tokens as engines counted them",
            about="Of requests to engines, P and D alike, by vLLM's own sources. Should equal "
            "vllm:prompt_tokens_by_source_total; a failed load still counts as external here.",
            unit="tokens/s",
            queries=(
                Query(rate("turnscope_request_prompt_tokens_total", "engine", "source"), "{{engine}} {{source}}"),
            ),
        ),
        Panel(
            title="Engine requests by how they finished",
            about="Each turn is at least two of them, one on P and one on D.",
            unit="requests/s",
            queries=(
                Query(positive(rate("turnscope_requests_total", "leg", "finish_reason")), "{{leg}} {{finish_reason}}"),
            ),
        ),
    ),
)

PAGE: Final = Page(
    "reuse",
    "turnscope: Reuse",
    "Which way turns went and why, where their prompt tokens came from, and what was computed twice.",
    (TURNS, TOKENS, EVIDENCE),
)
