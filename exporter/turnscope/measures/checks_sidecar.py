"""Is the sidecar itself well?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.measures.finding import Finding, Severity
from turnscope.model import SystemStatus, plural

SCRAPE_S: Final = 120.0
"""Two of the usual intervals; and a sidecar younger than this has not been missed yet."""


def journal_fails(status: SystemStatus) -> Iterator[Finding]:
    """What cannot be journalled is not acknowledged, so hooks keep it until they must drop it."""
    if status.exporter.journal_error:
        yield Finding(
            severity=Severity.ERROR,
            check="journal_fails",
            where="sidecar's journal",
            what=f"Its last write failed: {status.exporter.journal_error}. Nothing new is accepted.",
            fix="Make room or give write permission; hooks send again what was not acknowledged, as long as they can "
            "keep it.",
        )


def journal_damaged(status: SystemStatus) -> Iterator[Finding]:
    """Acknowledged events that cannot be read back from the disk."""
    if status.exporter.journal_damage:
        yield Finding(
            severity=Severity.ERROR,
            check="journal_damaged",
            where="sidecar's journal",
            what=f"{status.exporter.journal_damage}. The events in them are in no figure, and turns that had been "
            "counted in them may be counted once more. Everything around them was read.",
            fix="Check that disk and its file system. This finding ends when the files are moved out of that folder; "
            "turnscope deletes none of them.",
        )


def store_fails(status: SystemStatus) -> Iterator[Finding]:
    """Rows wait in memory and journal while the store cannot be written."""
    if status.exporter.store_error:
        yield Finding(
            severity=Severity.ERROR,
            check="store_fails",
            where="sidecar's store",
            what=f"Its last write failed: {status.exporter.store_error}. The explorer shows nothing newer.",
            fix="Make room, give write permission or mend the connection; what is in the journal is written then.",
        )


def traces_fail(status: SystemStatus) -> Iterator[Finding]:
    """The backend of turn traces does not take them."""
    if status.exporter.traces_error:
        yield Finding(
            severity=Severity.WARNING,
            check="traces_fail",
            where=status.exporter.traces_endpoint or "trace backend",
            what=f"The last export of turn traces failed: {status.exporter.traces_error}.",
            fix="Check the address and protocol of --export-otlp (OTLP over gRPC, usually port 4317; grpcs:// or "
            "https:// where it wants TLS).",
        )


def records_rejected(status: SystemStatus) -> Iterator[Finding]:
    """Somebody sends records that cannot be read."""
    if status.exporter.rejected_records:
        yield Finding(
            severity=Severity.WARNING,
            check="records_rejected",
            where="sidecar's receiver",
            what=f"{plural(status.exporter.rejected_records, 'record')} claimed to be turnscope's and could not be "
            "read.",
            fix="Use one version of turnscope everywhere; a collector between must not change attribute types.",
        )


def spans_not_passed_on(status: SystemStatus) -> Iterator[Finding]:
    """The user's own backend does not take the spans passed on to it."""
    if status.exporter.passing_on_error:
        yield Finding(
            severity=Severity.WARNING,
            check="spans_not_passed_on",
            where=status.exporter.passing_on_endpoint or "span backend",
            what=f"The last request with spans was not taken: {status.exporter.passing_on_error}.",
            fix="Check the address and protocol of --export-spans; turnscope itself has the spans.",
        )


def spans_rejected(status: SystemStatus) -> Iterator[Finding]:
    """Somebody sends spans that cannot be read."""
    if status.exporter.rejected_spans:
        yield Finding(
            severity=Severity.WARNING,
            check="spans_rejected",
            where="sidecar's receiver",
            what=f"{plural(status.exporter.rejected_spans, 'span')} had no valid ids or times, or a field of a wrong "
            "type, and were not taken in.",
            fix="See the sender's log, which was told what is wrong: ids are 32 and 16 hex digits, times Unix "
            "nanoseconds.",
        )


def requests_too_large(status: SystemStatus) -> Iterator[Finding]:
    """Senders count spans, receivers bytes: with content in them the usual 512 spans can be too much."""
    exporter = status.exporter
    if exporter.too_large_requests:
        limit = f" ({exporter.max_message_bytes / 2**20:.3g} MiB)" if exporter.max_message_bytes else ""
        yield Finding(
            severity=Severity.WARNING,
            check="requests_too_large",
            where="sidecar's receiver",
            what=f"{plural(exporter.too_large_requests, 'request was', 'requests were')} longer than "
            f"--max-message-bytes{limit} and refused: senders do not repeat them, and all that was in them is lost.",
            fix="Let agents send fewer spans at once (OTEL_BSP_MAX_EXPORT_BATCH_SIZE, 512 unless set) or no content, "
            "which is dropped here anyway; a collector between can split (send_batch_max_size). Or raise the limit.",
        )


_MISDIRECTED: Final = {
    "grpc": (
        "connection",
        "spoke gRPC",
        "Send gRPC to {grpc}, or set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf; an exporter that the application makes "
        "by itself has its protocol in its name, and the variable does nothing.",
    ),
    "tls": (
        "connection",
        "spoke TLS",
        "Write http:// and not https:// in the endpoint, or put what ends TLS before it.",
    ),
    "path": (
        "request",
        "went to another path than /v1/traces and /v1/logs",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is used as it is written: let it end with /v1/traces. To "
        "OTEL_EXPORTER_OTLP_ENDPOINT SDKs add the path.",
    ),
}


def misdirected(status: SystemStatus) -> Iterator[Finding]:
    """Somebody sends to the port for OTLP over HTTP what it does not take, and rarely learns why."""
    exporter = status.exporter
    for what, (noun, came, fix) in _MISDIRECTED.items():
        if number := exporter.misdirected.get(what, 0):
            yield Finding(
                severity=Severity.WARNING,
                check="misdirected",
                where=exporter.otlp_http_address,
                what=f"{plural(number, noun)} {came} since the sidecar started: this port takes OTLP over HTTP, and "
                "nothing of that was taken in.",
                fix=fix.format(grpc=exporter.otlp_address),
            )


def not_scraped(status: SystemStatus) -> Iterator[Finding]:
    """Nobody reads the metrics."""
    exporter = status.exporter
    since = exporter.uptime_s if exporter.last_scrape_s is None else exporter.last_scrape_s
    if since > SCRAPE_S:
        never = exporter.last_scrape_s is None
        yield Finding(
            severity=Severity.NOTE,
            check="not_scraped",
            where="sidecar's /metrics",
            what="Nobody has ever scraped it." if never else f"Last scraped {since:.0f} s ago.",
            fix="Add the sidecar's address (port 9464) to Prometheus' scrape_configs.",
        )


def replaying(status: SystemStatus) -> Iterator[Finding]:
    """What is said above is not complete yet."""
    if status.exporter.replaying:
        yield Finding(
            severity=Severity.NOTE,
            check="replaying",
            where="sidecar",
            what="It has just started and still reads its journal: these findings are not complete.",
            fix="Ask again in half a minute.",
        )
