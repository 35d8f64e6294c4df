"""What wakes somebody: answers that may be wrong, and turns that will never be answered."""

from __future__ import annotations

from alerts.rule import COUNT, PAGE, Alert, Group, engines

_AT_ONCE = "One is enough: the evidence is in and does not go away by waiting."
_AN_HOUR = " The alert stays for an hour after the last such turn; that it ends does not mean that it is mended."


def _suspicion(name: str, kind: str, summary: str, description: str) -> Alert:
    """A page for suspicions of these kinds, from the first turn on."""
    matcher = f'kind="{kind}"' if "|" not in kind else f'kind=~"{kind}"'
    return Alert(
        name=name,
        severity=PAGE,
        expr=f"increase(turnscope_suspicions_total{{{matcher}}}[1h]) > 0",
        wait="0s",
        wait_reason=_AT_ONCE,
        summary=f"Possibly wrong answers: {COUNT} in the last hour on {{{{ $labels.engine }}}}, {summary} "
        "(sidecar {{ $labels.instance }})",
        description=description + _AN_HOUR,
    )


ANSWERS = Group(
    name="turnscope-answers",
    title="Wrong answers and stuck turns",
    rules=(
        _suspicion(
            "TurnscopeKvMismatch",
            "kv_mismatch",
            "from KV of other text",
            "{{ $labels.engine }} reused KV that was computed from other tokens than the prompt's: vLLM checks "
            "positions, not tokens. The answers came with status 200 and may be wrong, and what it filed in its prefix "
            "cache may spoil turns of other sessions.",
        ),
        _suspicion(
            "TurnscopeReadAfterRelease",
            "read_after_release",
            "from KV blocks that had been given up",
            "An engine read blocks after their holder had let them go: by then they may have belonged to another "
            "request, even another user's. The answers came with status 200 and may be wrong. Late notices reached: "
            f"{engines('turnscope_late_notices_total')}.",
        ),
        _suspicion(
            "TurnscopeHandleReused",
            "duplicate_handle|stale_handle",
            "from a handle that was spent or out of date",
            "{{ if eq $labels.kind `duplicate_handle` }}One handle was given to two turns: the second fetch comes "
            "after the first one released the blocks.{{ else }}A handle was given whose hold had ended, or whose "
            "engine had been restarted.{{ end }} The answers came with status 200 and may be made from another "
            "request's KV. The proxy gives the handles: look there.",
        ),
        _suspicion(
            "TurnscopeAnsweredAfterFailedLoad",
            "answered_after_failed_load",
            "given although loading their KV had failed",
            "A load failed and the turn was answered all the same, without the missing tokens having been computed. "
            "The answers came with status 200 and may be wrong.",
        ),
        Alert(
            name="TurnscopeTurnsStuck",
            severity=PAGE,
            expr="""\
increase(turnscope_stuck_total[15m]) > 0
or on (job, instance)
turnscope_turns_open{state="stuck"} > 0""",
            wait="0s",
            wait_reason="The engine's hook saw that the request will never run, or it has stood still for the "
            "sidecar's limit (--stuck-seconds, 300) already.",
            summary="Turns that stand still: "
            + COUNT
            + "{{ with $labels.engine }} on {{ . }} ({{ $labels.cause }}){{ end }} (sidecar {{ $labels.instance }})",
            description="An engine promised to load KV and queued no read, or a request takes no step any more. It "
            "will never be answered, its client waits until its own timeout, and the engine's gauges may say running = "
            "waiting = 0. Causes: bidirectional_off, host_buffer, preempted, load_failed; unknown: no step for longer "
            "than the limit, which a long queue also does.",
        ),
    ),
)
