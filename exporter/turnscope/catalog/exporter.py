"""The sidecar's own health: what it took in, wrote, sent on and dropped, and how long that took."""

from __future__ import annotations

from turnscope.catalog.labels import EVENT
from turnscope.catalog.metric import Kind, Label, Metric
from turnscope.semconv import SpanKind

SIGNALS = ("logs", "traces")
REFUSALS = ("invalid", "too_large", "unsupported", "unavailable")
SPAN_REJECTIONS = ("bad_id", "bad_time", "unreadable")
MISDIRECTED = GRPC, TLS, PATH = "grpc", "tls", "path"
TRACE_DROPS = ("queue_full", "refused", "stopping")

_WRITE_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

EXPORTER = (
    Metric(
        name="turnscope_exporter_build_info",
        kind=Kind.INFO,
        unit="",
        help="The version of the running sidecar.",
        labels=(Label("version"),),
        diagnostic=True,
    ),
    Metric(
        name="turnscope_exporter_records_received_total",
        kind=Kind.COUNTER,
        unit="records",
        help="Log records of hooks that were journalled and acknowledged, by event.",
        labels=(EVENT,),
    ),
    Metric(
        name="turnscope_exporter_records_rejected_total",
        kind=Kind.COUNTER,
        unit="records",
        help="Log records that claimed to be a hook's and could not be read. The sender is told by partial success.",
    ),
    Metric(
        name="turnscope_exporter_records_foreign_total",
        kind=Kind.COUNTER,
        unit="records",
        help="Log records of others, ignored: narrow the collector's pipeline if there are many.",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_exporter_evaluations_received_total",
        kind=Kind.COUNTER,
        unit="evaluations",
        help="Log records gen_ai.evaluation.result that name a span: kept with it, unless that tells one itself.",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_exporter_requests_refused_total",
        kind=Kind.COUNTER,
        unit="requests",
        help="Export requests refused whole. unavailable: the sender tries again; the others are lost.",
        labels=(Label("signal", SIGNALS), Label("reason", REFUSALS)),
    ),
    Metric(
        name="turnscope_exporter_misdirected_total",
        kind=Kind.COUNTER,
        unit="connections",
        help="What came to the port for OTLP over HTTP and is none: connections that speak gRPC or TLS, and posts to "
        "another path. Nothing of it is taken in; turnscope doctor says what its senders have to set.",
        labels=(Label("what", MISDIRECTED),),
        diagnostic=True,
    ),
    Metric(
        name="turnscope_exporter_spans_received_total",
        kind=Kind.COUNTER,
        unit="spans",
        help="Spans of agents that were journalled and acknowledged, by what they stand for.",
        labels=(Label("kind", tuple(SpanKind)),),
    ),
    Metric(
        name="turnscope_exporter_spans_rejected_total",
        kind=Kind.COUNTER,
        unit="spans",
        help="Spans that could not be taken in: ids or times that are none, or a field of a wrong type. The sender is "
        "told by partial success.",
        labels=(Label("reason", SPAN_REJECTIONS),),
    ),
    Metric(
        name="turnscope_exporter_spans_without_end_total",
        kind=Kind.COUNTER,
        unit="spans",
        help="Spans taken in that had no end, or one before their start or a month after it: how long they took is "
        "unknown.",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_exporter_span_requests_passed_on_total",
        kind=Kind.COUNTER,
        unit="requests",
        help="Requests with spans that your own backend took as they were received (--export-spans).",
    ),
    Metric(
        name="turnscope_exporter_span_requests_not_passed_on_total",
        kind=Kind.COUNTER,
        unit="requests",
        help="Requests with spans that your own backend did not get: the queue was full, it refused them, or the "
        "sidecar stopped. turnscope has them all the same.",
        labels=(Label("reason", TRACE_DROPS),),
    ),
    Metric(
        name="turnscope_exporter_journal_bytes_total",
        kind=Kind.COUNTER,
        unit="bytes",
        help="Bytes written to the journal.",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_exporter_journal_write_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="Time to write and sync one group of records: senders wait for it.",
        buckets=_WRITE_SECONDS,
        diagnostic=True,
    ),
    Metric(
        name="turnscope_exporter_journal_size_bytes",
        kind=Kind.GAUGE,
        unit="bytes",
        help="Size of the journal on disk. Beyond its limit senders are asked to try again later.",
    ),
    Metric(
        name="turnscope_exporter_journal_lag_bytes",
        kind=Kind.GAUGE,
        unit="bytes",
        help="Bytes journalled and not yet assembled. Rising: the sidecar has too little CPU.",
    ),
    Metric(
        name="turnscope_exporter_journal_failed",
        kind=Kind.GAUGE,
        unit="",
        help="1 while the journal cannot take anything in (disk full, not writable, over its limit), else 0.",
    ),
    Metric(
        name="turnscope_exporter_journal_unreadable_bytes",
        kind=Kind.GAUGE,
        unit="bytes",
        help="Bytes of the journal that could not be read, kept in *.unreadable files: what was in them is in no "
        "figure. 0 again once these files are moved away.",
    ),
    Metric(
        name="turnscope_exporter_assembly_errors_total",
        kind=Kind.COUNTER,
        unit="errors",
        help="Errors of turnscope's own while assembling, each logged; the event concerned is passed over.",
    ),
    Metric(
        name="turnscope_exporter_replay_seconds",
        kind=Kind.GAUGE,
        unit="seconds",
        help="How long the last start took to replay the journal.",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_exporter_store_rows_total",
        kind=Kind.COUNTER,
        unit="rows",
        help="Rows written to the store: one per revision of a turn or hold.",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_exporter_store_rows_lost_total",
        kind=Kind.COUNTER,
        unit="rows",
        help="Rows that never reached the store: it could not be written for too long, or could not hold a value.",
    ),
    Metric(
        name="turnscope_exporter_store_failures_total",
        kind=Kind.COUNTER,
        unit="failures",
        help="Failed writes to the store. Rows wait and are tried again.",
    ),
    Metric(
        name="turnscope_exporter_store_pending_rows",
        kind=Kind.GAUGE,
        unit="rows",
        help="Rows that readers of the store cannot see yet.",
        diagnostic=True,
    ),
    Metric(
        name="turnscope_exporter_traces_exported_total",
        kind=Kind.COUNTER,
        unit="traces",
        help="Turn traces that the trace backend took.",
    ),
    Metric(
        name="turnscope_exporter_traces_left_out_total",
        kind=Kind.COUNTER,
        unit="traces",
        help="Turn traces not sent on purpose: ordinary turns beyond --trace-ratio.",
    ),
    Metric(
        name="turnscope_exporter_traces_dropped_total",
        kind=Kind.COUNTER,
        unit="traces",
        help="Turn traces that no backend got: the queue was full, the backend refused them, or the sidecar stopped.",
        labels=(Label("reason", TRACE_DROPS),),
    ),
)
