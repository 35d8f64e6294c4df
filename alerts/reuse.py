"""Is reuse on, used and worth it?"""

from __future__ import annotations

from alerts.rule import COUNT, TICKET, Alert, Group

_NOTHING = "TurnscopeNothingReused"
_NOTHING_WAIT = "10m"
_NOTHING_REASON = "A rolling change of settings passes; a wrong setting stays."
_FETCHES_NOTHING = """
and
  sum without (path, reason) (increase(turnscope_turns_total{path=~"reverse_fetch|mixed"}[1h]))
  < 0.01 * sum without (path, reason) (increase(turnscope_turns_total[1h]))"""
"""Of an engine: less than one turn in a hundred."""

REUSE = Group(
    name="turnscope-reuse",
    title="Reuse",
    rules=(
        Alert(
            name=_NOTHING,
            labels={"cause": "no_handle"},
            severity=TICKET,
            expr="""\
(
  sum without (handle) (increase(turnscope_answers_total[1h])) >= 10
  unless
  sum without (handle) (increase(turnscope_answers_total{handle="yes"}[1h])) > 0
)
and on (job, instance, engine) turnscope_engine_info{bidirectional="yes"}""",
            wait=_NOTHING_WAIT,
            wait_reason=_NOTHING_REASON,
            summary="Reverse transfer is on at {{ $labels.engine }}, and 0 of "
            + COUNT
            + " answers carried a handle (streamed: {{ $labels.streamed }})",
            description="{{ $labels.engine }} holds blocks for the next turn and pays for them, and its answers do not "
            "say where they are: every next turn recomputes its whole history, quietly. vLLM up to 0.32 leaves the "
            "handle out of streamed answers.",
        ),
        Alert(
            name=_NOTHING,
            labels={"cause": "no_session_id"},
            severity=TICKET,
            expr="""\
  sum without (engine, path, reason) (increase(turnscope_turns_total{reason="no_session_id"}[1h]))
  > 0.5 * (sum without (engine, path, reason) (increase(turnscope_turns_total[1h])) >= 10)
and
  sum without (engine, path, reason) (increase(turnscope_turns_total{path=~"reverse_fetch|mixed"}[1h]))
  < 0.01 * sum without (engine, path, reason) (increase(turnscope_turns_total[1h]))
and on (job, instance) turnscope_engine_info{bidirectional="yes"}""",
            wait=_NOTHING_WAIT,
            wait_reason=_NOTHING_REASON,
            summary="Reverse transfer is on and nothing is fetched: "
            + COUNT
            + " turns named no session (sidecar {{ $labels.instance }})",
            description="Without a session id the proxy cannot give a turn the handle of the one before it: more than "
            "half of the last hour's turns had none, and they recompute their whole history. Engines and proxy are "
            "well; the clients have to send X-Session-ID.",
        ),
        Alert(
            name=_NOTHING,
            labels={"cause": "feature_off"},
            severity=TICKET,
            expr="""\
max without (model, vllm_version, connector, bidirectional) (
  turnscope_engine_info{role="prefill",bidirectional="no"}
  and on (job, instance) turnscope_engine_info{role="decode",bidirectional="yes"}
)
or
max without (model, vllm_version, connector, bidirectional) (
  turnscope_engine_info{role="decode",bidirectional="no"}
  and on (job, instance) turnscope_engine_info{role="prefill",bidirectional="yes"}
)""",
            wait=_NOTHING_WAIT,
            wait_reason=_NOTHING_REASON,
            summary="Reverse transfer is off at {{ $labels.engine }} and on at the other side",
            description="{{ if eq $labels.role `prefill` }}A turn that brings D's handle to {{ $labels.engine }} hangs "
            "for ever, with running = waiting = 0.{{ else }}{{ $labels.engine }} holds nothing, so the next turn of "
            "each of its sessions recomputes.{{ end }} bidirectional_kv_xfer must be the same on both sides.",
        ),
        Alert(
            name=_NOTHING,
            labels={"cause": "handles_expired"},
            severity=TICKET,
            expr="""\
  sum without (path, reason) (increase(turnscope_turns_total{reason="declined_expired"}[1h])) >= 10"""
            + _FETCHES_NOTHING,
            wait=_NOTHING_WAIT,
            wait_reason=_NOTHING_REASON,
            summary="Nothing is fetched by {{ $labels.engine }}: "
            + COUNT
            + " turns brought a handle whose hold had ended",
            description="The proxy keeps handles as long as D keeps the blocks, or longer (proxy TTL >= holder TTL), "
            "so {{ $labels.engine }} declines them. With kv_load_failure_policy fail, the default, each such turn "
            "fails.",
        ),
        Alert(
            name=_NOTHING,
            labels={"cause": "below_threshold"},
            severity=TICKET,
            expr="""\
  sum without (path, reason) (increase(turnscope_turns_total{reason="below_threshold",path="recompute"}[1h])) >= 10"""
            + _FETCHES_NOTHING,
            wait=_NOTHING_WAIT,
            wait_reason=_NOTHING_REASON,
            summary="Nothing is fetched by {{ $labels.engine }}: "
            + COUNT
            + " turns brought a handle for fewer tokens than its threshold",
            description="kv_recompute_threshold of {{ $labels.engine }} is too high for this traffic: what D holds for "
            "the next turn is less than that, so it is computed again, and D keeps blocks for nobody.",
        ),
        Alert(
            name="TurnscopeReadsDeclined",
            severity=TICKET,
            expr="""\
sum without (direction, state) (
  increase(turnscope_transfer_reads_total{direction="reverse_fetch",state="declined"}[30m])
) >= 3""",
            wait="5m",
            wait_reason="One late user is nothing to mend; three within half an hour are a time limit that does not "
            "fit.",
            summary="{{ $labels.engine }} declined " + COUNT + " reads in the last half hour: the holds had ended",
            description="Turns brought a handle within 5 s of its hold's end, or after it. With kv_load_failure_policy "
            "fail, the default, each such turn fails with HTTP 500; with recompute it computes its whole prompt.",
        ),
        Alert(
            name="TurnscopeFetchSlowerThanRecompute",
            severity=TICKET,
            expr="""\
increase(turnscope_fetch_loss_seconds_total[1h]) - increase(turnscope_fetch_gain_seconds_total[1h]) > 0
and
sum without (worth) (increase(turnscope_fetches_total{worth=~"gained|lost"}[1h])) >= 10""",
            wait="30m",
            wait_reason="A burst of short prompts passes; a slow path between two engines stays.",
            summary='Fetching cost {{ $labels.engine }} {{ $value | printf "%.1f" }} s more in the last hour than '
            "computing would have",
            description="By the engine's own measured compute rate the last hour's fetches took longer than the "
            "compute they spared. Answers are right; users wait longer than without the feature.",
        ),
        Alert(
            name="TurnscopeContinuityFell",
            severity=TICKET,
            expr="""\
engine:turnscope_rewritten_tokens:ratio_rate1h
> 0.1 + engine:turnscope_rewritten_tokens:ratio_rate1h offset 1d
and
sum without (instance, evidence) (
  increase(turnscope_turns_continuity_total{evidence=~"digests|first_turn"}[1h])
) >= 20""",
            wait="1h",
            wait_reason="Another mix of users passes within the hour; what a release changed stays.",
            summary="{{ $value | humanizePercentage }} of what {{ $labels.engine }} computes is rewritten history, at "
            "least 10 points more than a day ago",
            description="Prompts continue what was there before less than yesterday: text that the session had already "
            "sent comes at another place, so nothing behind it can be reused. That is usually a release: a timestamp "
            "in the system prompt, reasoning left out, another template. Models and engine versions that are new since "
            'yesterday: {{ range $i, $found := query (printf "group by (model, vllm_version) '
            "(turnscope_engine_info{job=%q} unless on (job, model, vllm_version) turnscope_engine_info{job=%q} offset "
            '1d)" $labels.job $labels.job) }}'
            "{{ if $i }}, {{ end }}{{ $found.Labels.model }} on vLLM {{ $found.Labels.vllm_version }}"
            "{{ else }}none, so look at the application{{ end }}.",
        ),
    ),
)
