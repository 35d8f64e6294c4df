"""Exporter health: whether turnscope itself can be believed."""

from __future__ import annotations

from typing import Final

from dashboards.panels import Page, Panel, Query, Row
from dashboards.queries import UP, increase, most, now, rate, series

HEARD: Final = Row(
    "What is heard",
    (
        Panel(
            title="Sidecars that Prometheus reaches",
            about="1: the last scrape was answered. While the journal is replayed after a start, a sidecar answers "
            "503.",
            alerts=("TurnscopeTargetMissing",),
            unit="",
            queries=(Query(UP, "{{instance}}"),),
            view="figure",
            width=8,
        ),
        Panel(
            title="Processes with a hook",
            about="Heard of within the last half minute, by kind.",
            alerts=("TurnscopeHookMissing",),
            unit="processes",
            queries=(Query(now("turnscope_emitters_alive", "emitter_kind"), "{{emitter_kind}}"),),
            width=8,
        ),
        Panel(
            title="Engines whose own metrics can be read",
            about="1: yes, 0: no; then running, waiting, preemptions and usage are absent. Only of engines that "
            "--engine-metrics names.",
            unit="",
            queries=(Query(most("turnscope_engine_metrics_up", "engine"), "{{engine}}"),),
            width=8,
        ),
        Panel(
            title="Records received",
            about="Journalled and acknowledged, by event.",
            unit="records/s",
            queries=(Query(rate("turnscope_exporter_records_received_total", "event"), "{{event}}"),),
            view="stacked",
        ),
        Panel(
            title="Events that hooks dropped",
            about="A hook's ring was full, or sending failed for good. Serving is not affected, the evidence is.",
            alerts=("TurnscopeDataDropped",),
            unit="events/s",
            queries=(Query(rate("turnscope_hook_dropped_total", "emitter_kind"), "{{emitter_kind}}"),),
        ),
        Panel(
            title="Errors inside hooks",
            about="Exceptions that hooks caught. Serving is not affected; the log of the process says what it was.",
            unit="errors/s",
            queries=(Query(rate("turnscope_hook_errors_total", "emitter_kind"), "{{emitter_kind}}"),),
        ),
        Panel(
            title="Events lost on the way",
            about="Numbered events that had not come a minute after a later one had.",
            unit="events/s",
            queries=(Query(rate("turnscope_events_missing_total", "emitter_kind"), "{{emitter_kind}}"),),
        ),
    ),
)

DROPPED: Final = Row(
    "What is refused or dropped, by stage",
    (
        Panel(
            title="Records that could not be read",
            about="They claimed to be a hook's: versions that do not fit, or somebody else's data.",
            unit="records",
            queries=(Query(increase("turnscope_exporter_records_rejected_total")),),
            view="figure",
            width=6,
        ),
        Panel(
            title="Requests refused whole",
            about="unavailable: the sender tries again. too_large and invalid: what was in them is lost.",
            unit="requests",
            queries=(Query(increase("turnscope_exporter_requests_refused_total", "reason"), "{{reason}}"),),
            view="figure",
            width=18,
        ),
        Panel(
            title="Errors while assembling",
            about="turnscope's own: each is logged, the event is passed over. Please report them.",
            unit="errors",
            queries=(Query(increase("turnscope_exporter_assembly_errors_total")),),
            view="figure",
            width=6,
        ),
        Panel(
            title="Rows that never reached the store",
            about="It could not be written for too long, or could not hold a value.",
            unit="rows",
            queries=(Query(increase("turnscope_exporter_store_rows_lost_total")),),
            view="figure",
            width=6,
        ),
        Panel(
            title="Failed writes to the store",
            about="Rows wait and are tried again: nothing is lost yet.",
            alerts=("TurnscopeStoreFails",),
            unit="failures",
            queries=(Query(increase("turnscope_exporter_store_failures_total")),),
            view="figure",
            width=6,
        ),
        Panel(
            title="Traces that no backend got",
            about="queue_full: the backend is too slow. refused: it does not take them. stopping: the sidecar was "
            "stopped.",
            unit="traces",
            queries=(Query(increase("turnscope_exporter_traces_dropped_total", "reason"), "{{reason}}"),),
            view="figure",
            width=6,
        ),
        Panel(
            title="Traces exported",
            about="exported: turn traces that the backend took. left out: not sent on purpose, see --trace-ratio.",
            unit="traces/s",
            queries=(
                Query(rate("turnscope_exporter_traces_exported_total"), "exported"),
                Query(rate("turnscope_exporter_traces_left_out_total"), "left out"),
            ),
            width=24,
        ),
    ),
)

SPANS: Final = Row(
    "Agents' spans",
    (
        Panel(
            title="Spans received from agents",
            about="Journalled and acknowledged, by what they stand for. They tell what an agent did between its turns.",
            unit="spans/s",
            queries=(Query(rate("turnscope_exporter_spans_received_total", "kind"), "{{kind}}"),),
            view="stacked",
        ),
        Panel(
            title="Requests with spans passed on to your own backend",
            about="Only with --export-spans: taken by it as they were received. turnscope has them in any case.",
            unit="requests/s",
            queries=(
                Query(rate("turnscope_exporter_span_requests_passed_on_total"), "passed on"),
                Query(rate("turnscope_exporter_span_requests_not_passed_on_total", "reason"), "not: {{reason}}"),
            ),
        ),
        Panel(
            title="Spans that could not be taken in",
            about="Their ids or times are none, or a field has a wrong type. The sender is told.",
            unit="spans",
            queries=(Query(increase("turnscope_exporter_spans_rejected_total", "reason"), "{{reason}}"),),
            view="figure",
            width=12,
        ),
        Panel(
            title="Spans forgotten before their time",
            about="Too many came at once: what comes later of their traces may not find its session. They are stored.",
            unit="spans",
            queries=(Query(increase("turnscope_spans_forgotten_total")),),
            view="figure",
            width=12,
        ),
    ),
)

JOURNAL: Final = Row(
    "Journal",
    (
        Panel(
            title="Journalled and not assembled yet",
            about="Rising: the sidecar has too little CPU, and every figure is late.",
            alerts=("TurnscopeAssemblyLags",),
            unit="bytes",
            queries=(Query(now("turnscope_exporter_journal_lag_bytes", "instance"), "{{instance}}"),),
            width=8,
        ),
        Panel(
            title="Size of the journal",
            about="Beyond --journal-max-bytes senders are asked to try again later.",
            unit="bytes",
            queries=(Query(now("turnscope_exporter_journal_size_bytes", "instance"), "{{instance}}"),),
            width=8,
        ),
        Panel(
            title="Bytes of the journal that could not be read",
            about="Kept in *.unreadable files: what was in them is in no figure. 0 again once they are moved away.",
            unit="bytes",
            queries=(Query(now("turnscope_exporter_journal_unreadable_bytes", "instance"), "{{instance}}"),),
            width=8,
        ),
        Panel(
            title="Journal that takes nothing in",
            about="1: its disk is full, not writable, or it is over its limit. Hooks' events wait, then are dropped.",
            alerts=("TurnscopeJournalFails",),
            unit="",
            queries=(Query(series("turnscope_exporter_journal_failed"), "{{instance}}"),),
            view="figure",
            width=24,
        ),
    ),
)

PAGE: Final = Page(
    "health",
    "turnscope: Exporter health",
    "Whether turnscope itself can be believed: what it hears, drops, writes and how far it is behind.",
    (HEARD, DROPPED, SPANS, JOURNAL),
)
