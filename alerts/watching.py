"""Can the other alerts be trusted: does turnscope hear all, keep all, and keep up?"""

from __future__ import annotations

from alerts.rule import COUNT, TICKET, Alert, Group

_DROPPED = "TurnscopeDataDropped"


def _dropped(
    stage: str, expr: str, summary: str, description: str, *, wait: str = "0s", time: str = "15 minutes"
) -> Alert:
    """Something was lost at this stage."""
    return Alert(
        name=_DROPPED,
        labels={"stage": stage},
        severity=TICKET,
        expr=expr,
        wait=wait,
        wait_reason="What is dropped does not come back: waiting tells nothing more."
        if wait == "0s"
        else "An event counts as missing a minute before or after its process tells that it dropped it.",
        summary=f"{summary}: {COUNT} in {time} (sidecar {{{{ $labels.instance }}}})",
        description=description,
    )


WATCHING = Group(
    name="turnscope-watching",
    title="turnscope itself",
    rules=(
        Alert(
            name="TurnscopeTargetMissing",
            severity=TICKET,
            expr='up{job="turnscope"} == 0 or absent(up{job="turnscope"})',
            wait="5m",
            wait_reason="A restart replays its journal for at most half a minute, and /metrics answers 503 meanwhile.",
            summary="{{ with $labels.instance }}The sidecar {{ . }} cannot be scraped{{ else }}Prometheus has no "
            "target of job turnscope{{ end }}",
            description="No alert of turnscope can fire for it: silence is not health. Serving is not affected; hooks "
            "keep what they can and count what they drop.",
        ),
        Alert(
            name="TurnscopeHookMissing",
            severity=TICKET,
            expr="""\
turnscope_emitters_alive{emitter_kind!="other"} == 0
and
max_over_time(turnscope_emitters_alive{emitter_kind!="other"}[6h]) > 0""",
            wait="10m",
            wait_reason="A rolling restart of all processes of one kind takes minutes.",
            summary="No {{ $labels.emitter_kind }} process with a hook is heard any more (sidecar {{ $labels.instance "
            "}})",
            description="There were some within the last six hours. What they told is missing from every figure since: "
            "without engines no turns, without workers no transfers, without the proxy no time to first token, without "
            "collectors no transport. If all of them were switched off on purpose, nothing is to be mended.",
        ),
        _dropped(
            "hook",
            "increase(turnscope_hook_dropped_total[15m]) > 0",
            "Events dropped by hooks of kind {{ $labels.emitter_kind }}",
            "A ring was full or the sidecar could not be reached for too long. Turns of that time may lack a leg, a "
            "transfer or a reason; serving is not affected.",
        ),
        _dropped(
            "hook_error",
            "increase(turnscope_hook_errors_total[15m]) > 0",
            "Errors inside hooks of kind {{ $labels.emitter_kind }}",
            "A hook's own code failed and was caught. Serving is not affected; the facts of those moments are missing, "
            "and a hook that keeps failing switches itself off.",
        ),
        _dropped(
            "way",
            """\
increase(turnscope_events_missing_total[1h])
- increase(turnscope_events_recovered_total[1h])
- increase(turnscope_hook_dropped_total[1h])
> 0""",
            "Events of {{ $labels.emitter_kind }} processes that were sent and never arrived",
            "They were numbered, their process did not drop them, and they did not come: a collector between loses "
            "them. Turns of that time may lack a leg, a transfer or a reason.",
            wait="10m",
            time="an hour",
        ),
        _dropped(
            "receiver",
            """\
increase(turnscope_exporter_records_rejected_total[15m])
+ sum without (reason, signal) (increase(turnscope_exporter_requests_refused_total{reason!="unavailable"}[15m]))
> 0""",
            "Records or requests refused for good",
            "They could not be read, or were too large; their senders were told and do not send them again.",
        ),
        _dropped(
            "assembly",
            "increase(turnscope_exporter_assembly_errors_total[15m]) > 0",
            "Events passed over by an error of turnscope's own",
            "The error is in the sidecar's log. The event concerned is in the journal and in no figure.",
        ),
        _dropped(
            "store",
            "increase(turnscope_exporter_store_rows_lost_total[15m]) > 0",
            "Rows that never reached the store",
            "Metrics have counted those turns; explorer and terminal do not show them.",
        ),
        _dropped(
            "traces",
            'sum without (reason) (increase(turnscope_exporter_traces_dropped_total{reason!="stopping"}[15m])) > 0',
            "Turn traces dropped",
            "No trace backend got them; metrics and store have the turns.",
        ),
        Alert(
            name="TurnscopeAssemblyLags",
            severity=TICKET,
            expr="""\
min_over_time(turnscope_exporter_journal_lag_bytes[10m]) > 10e6
and deriv(turnscope_exporter_journal_lag_bytes[10m]) >= 0""",
            wait="10m",
            wait_reason="After a restart or a burst the lag shrinks again by itself.",
            summary="The sidecar {{ $labels.instance }} is {{ $value | humanize1024 }}B behind and does not catch up",
            description="Events are safe in the journal; metrics, traces, store and the other alerts are late by as "
            "much. When the journal reaches its limit, senders are refused and hooks begin to drop.",
        ),
        Alert(
            name="TurnscopeJournalFails",
            labels={"cause": "cannot_write"},
            severity=TICKET,
            expr="turnscope_exporter_journal_failed > 0",
            wait="2m",
            wait_reason="Hooks keep some minutes of events and send them again: a short failure loses nothing.",
            summary="The sidecar {{ $labels.instance }} cannot write its journal and takes nothing in",
            description="Its disk is full or not writable, or the journal is over its limit. Hooks keep what they can "
            "and then drop the oldest; serving is not affected.",
        ),
        Alert(
            name="TurnscopeJournalFails",
            labels={"cause": "damaged"},
            severity=TICKET,
            expr="turnscope_exporter_journal_unreadable_bytes > 0",
            wait="0s",
            wait_reason="Damage does not mend itself: it was copied aside and stays until somebody moves it.",
            summary="{{ $value | humanize1024 }}B of the journal of {{ $labels.instance }} cannot be read",
            description="Events that had been acknowledged are in no figure, and turns that were counted in them may "
            "be counted once more. Everything around them was read. The bytes are in *.unreadable files beside the "
            "journal; the disk is to be suspected.",
        ),
        Alert(
            name="TurnscopeStoreFails",
            severity=TICKET,
            expr="increase(turnscope_exporter_store_failures_total[10m]) > 0",
            wait="10m",
            wait_reason="Writes are tried again: a failure that passes loses nothing.",
            summary=COUNT + " writes of {{ $labels.instance }} to its store failed in 10 minutes",
            description="Rows wait in memory and journal and are written when the store works again; explorer and "
            "terminal show nothing newer until then. When it lasts too long rows are lost, which TurnscopeDataDropped "
            "tells.",
        ),
    ),
)
