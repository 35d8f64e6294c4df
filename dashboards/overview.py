"""Overview: is bidirectional transfer on, used, worth it, and safe?"""

from __future__ import annotations

from typing import Final

from dashboards.panels import Page, Panel, Query, Row, sessions_with
from dashboards.queries import UP, increase, now, positive, quantile, rate, series, share

ON: Final = Row(
    "Is it on?",
    (
        Panel(
            title="Sidecars that Prometheus reaches",
            about="Share of the scrape targets of this deployment that answered the last scrape. Below 100 % "
            "everything else on this page is incomplete.",
            unit="ratio",
            queries=(Query(f"avg({UP})"),),
            view="figure",
            width=6,
        ),
        Panel(
            title="Processes with a hook, by kind",
            about="Engines, their workers, proxies and collectors of card counters heard of within the last half "
            "minute. Without the proxy's hook there are no times to first token; without D's, no holds.",
            unit="processes",
            queries=(Query(now("turnscope_emitters_alive", "emitter_kind"), "{{emitter_kind}}"),),
            view="figure",
            width=18,
        ),
        Panel(
            title="Engines and how they are set",
            about="One line an engine: its role, model, vLLM version, KV connector, and whether bidirectional "
            "transfer is on. It has to be on for P and for D, else nothing is ever fetched back.",
            unit="",
            queries=(Query(series("turnscope_engine_info")),),
            view="table",
            width=24,
        ),
    ),
)

USED: Final = Row(
    "Is it used?",
    (
        Panel(
            title="Turns",
            about="Turns (one model call as the client sees it) finished in the time shown.",
            unit="turns",
            queries=(Query(increase("turnscope_turns_total")),),
            view="figure",
            width=6,
            explorer=sessions_with(sort="Latest activity"),
        ),
        Panel(
            title="Turns that fetched back from D",
            about="Turns that got at least a part of their prompt's KV back from the decode engine instead of "
            "computing it again.",
            unit="turns",
            queries=(Query(increase("turnscope_turns_total", path='=~"reverse_fetch|mixed"')),),
            view="figure",
            width=6,
            explorer=sessions_with(path="reverse_fetch"),
        ),
        Panel(
            title="Prompt tokens fetched back",
            about="Prompt tokens whose KV came back from a decode engine, in the time shown.",
            unit="tokens",
            queries=(Query(increase("turnscope_prompt_tokens_total", source="fetched")),),
            view="figure",
            width=6,
        ),
        Panel(
            title="Share of prompt tokens not computed",
            about="Prompt tokens found on P, fetched from D or from another store, over all prompt tokens of the time "
            "shown. Suspect tokens are part of it: see 'Is it safe?'.",
            unit="ratio",
            queries=(
                Query(
                    share(
                        increase("turnscope_prompt_tokens_total", source='=~"local_hit|fetched|external"'),
                        increase("turnscope_prompt_tokens_total"),
                    )
                ),
            ),
            view="figure",
            width=6,
        ),
        Panel(
            title="Turns by where their prompt came from",
            about="recompute: all of it was computed. local_hit: reused from P's own cache. reverse_fetch: from D. "
            "mixed: both. unknown: the prefill never finished, or its engine has no hook.",
            unit="turns/s",
            queries=(Query(rate("turnscope_turns_total", "path"), "{{path}}"),),
            view="stacked",
        ),
        Panel(
            title="Why there was no (more) fetch",
            about="Turns of the time shown by the reason why nothing, or nothing more, was fetched back. "
            "docs/reasons.md explains each; first_turn is normal.",
            unit="turns",
            queries=(Query(positive(increase("turnscope_turns_total", "reason", reason='!="none"')), "{{reason}}"),),
            view="bars",
            alerts=("TurnscopeNothingReused",),
        ),
    ),
)

WORTH: Final = Row(
    "Is it worth it?",
    (
        Panel(
            title="Compute time saved by fetching",
            about="Estimated seconds of prefill that fetches spared, less the seconds that they took, in the time "
            "shown: from each engine's own measured prefills. Not counted until an engine has enough of them.",
            unit="seconds",
            queries=(
                Query(
                    f"{increase('turnscope_fetch_gain_seconds_total')} - "
                    f"{increase('turnscope_fetch_loss_seconds_total')}"
                ),
            ),
            view="figure",
            width=6,
        ),
        Panel(
            title="Fetches by whether they were faster than computing",
            about="gained: certainly faster. lost: certainly slower. undecided: the estimate allows both. unknown: "
            "the engine's prefill speed is not known yet.",
            unit="turns",
            queries=(Query(increase("turnscope_fetches_total", "worth"), "{{worth}}"),),
            view="figure",
            width=18,
        ),
        Panel(
            title="Time to first token, median, by where the prompt came from",
            about="From the client's request reaching the proxy to its first content byte. Needs the proxy's hook. "
            "Compare like with like: longer prompts are fetched more often.",
            unit="seconds",
            queries=(Query(quantile(0.5, "turnscope_ttft_seconds", "path"), "{{path}}", exemplars=True),),
            width=24,
        ),
    ),
)

SAFE: Final = Row(
    "Is it safe?",
    (
        Panel(
            title="Turns whose answer may be wrong",
            about="Turns with evidence that KV of other text was reused, by kind of evidence, in the time shown. "
            "Anything above 0 deserves a look at once.",
            unit="turns",
            queries=(Query(increase("turnscope_suspicions_total", "kind"), "{{kind}}"),),
            view="figure",
            width=18,
            alerts=(
                "TurnscopeKvMismatch",
                "TurnscopeReadAfterRelease",
                "TurnscopeHandleReused",
                "TurnscopeAnsweredAfterFailedLoad",
            ),
            explorer=sessions_with(check="Possibly wrong"),
        ),
        Panel(
            title="Suspicions withdrawn",
            about="Later facts refuted them. The count beside is of evidence when it came, and never goes back.",
            unit="turns",
            queries=(Query(increase("turnscope_suspicions_withdrawn_total")),),
            view="figure",
            width=6,
        ),
        Panel(
            title="Turns that stand still now",
            about="stuck: an engine will never run them, or they have taken no step for longer than the limit; their "
            "clients wait until they give up. running: all other turns not ended.",
            unit="turns",
            queries=(Query(now("turnscope_turns_open", "state"), "{{state}}"),),
            view="figure",
            width=8,
            alerts=("TurnscopeTurnsStuck",),
        ),
        Panel(
            title="Turns found to stand still, by cause",
            about="Counted when they were found, in the time shown. The runbook explains the causes; "
            "unknown: no step for longer than the limit.",
            unit="turns",
            queries=(Query(increase("turnscope_stuck_total", "cause"), "{{cause}}"),),
            view="figure",
            width=16,
            alerts=("TurnscopeTurnsStuck",),
        ),
        Panel(
            title="Possibly wrong answers by prefill engine",
            about="The same turns by the engine that their prompts went to. On one engine only: look at it, and at "
            "what differs there. On all: look at what gives the handles.",
            unit="turns",
            queries=(Query(increase("turnscope_suspicions_total", "engine"), "{{engine}}"),),
            view="bars",
            width=12,
            explorer=sessions_with(check="Possibly wrong"),
        ),
        Panel(
            title="Turns by how they ended",
            about="ok, error, cancelled (the client left) and stuck, in the time shown.",
            unit="turns",
            queries=(Query(increase("turnscope_turns_ended_total", "status"), "{{status}}"),),
            view="figure",
            width=12,
            explorer=sessions_with(check="Not answered"),
        ),
    ),
)

PAGE: Final = Page(
    "overview",
    "turnscope: Overview",
    "Is bidirectional KV transfer on, used, worth it, and safe?",
    (ON, USED, WORTH, SAFE),
)
