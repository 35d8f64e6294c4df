"""The sidecar, wired: everything ``turnscope serve`` runs."""

from __future__ import annotations

import logging
import socket
import time
from contextlib import ExitStack
from importlib.metadata import version
from typing import Final

import msgspec

from turnscope.assembly import Assembler, AssemblySettings
from turnscope.assembly.settings import SECOND
from turnscope.catalog import METRICS
from turnscope.catalog.exporter import MISDIRECTED
from turnscope.cli.errors import Sorry
from turnscope.cli.ports import cannot_listen, check_listening
from turnscope.config import Settings, split_address, split_pairs
from turnscope.decode import jsonlines, otlp_json
from turnscope.journal import checkpoint as checkpoints
from turnscope.journal.folder import JournalUnavailable, cannot_write
from turnscope.journal.journal import Journal
from turnscope.journal.unreadable import DAMAGED
from turnscope.model import AgentSpan, Contribution, Event, ExporterStatus, SystemStatus, plural, shown
from turnscope.outputs import exposition, http
from turnscope.outputs.metrics import MetricState
from turnscope.outputs.otlp import BadEndpoint, TraceSender, trace_sender
from turnscope.outputs.passing_on import PassingOn
from turnscope.outputs.recording import Recorder
from turnscope.outputs.rows import StoreRows
from turnscope.outputs.sampling import Sampler
from turnscope.outputs.traces import TraceExporter
from turnscope.pipeline import Pipeline
from turnscope.receivers import otlp_http
from turnscope.receivers.digest_key import BadKey, load_or_make
from turnscope.receivers.engine_metrics import EngineMetrics
from turnscope.receivers.fabric import Collector
from turnscope.receivers.intake import LogsIntake, SpansIntake
from turnscope.receivers.misdirected import Misdirected
from turnscope.receivers.otlp_grpc import OtlpGrpc
from turnscope.store import StoreError, SummarisingWriter
from turnscope.store.manifest import valid_writer

_LOG: Final = logging.getLogger(__name__)

_GRACE_S: Final = 5.0
"""For requests in progress, and again for queued traces, once the sidecar is told to stop."""
_REPLAYING: Final = "replaying the journal after a start: counts are not complete yet"


class Sidecar:
    """Takes its ports, its journal and its store when made; ``start`` makes it answer, ``close`` ends it.

    ``close`` loses nothing that was acknowledged. Making it raises ``Sorry`` when something that it needs cannot be
    had, and leaves nothing open then.
    """

    def __init__(self, settings: Settings) -> None:
        self._version = version("turnscope")
        self._settings = settings
        self._started_s = time.monotonic()
        self._scraped_s: float | None = None
        self.metrics = MetricState(METRICS, now_s=time.monotonic)
        self.metrics.gauge("turnscope_exporter_build_info", (self._version,), 1)
        with ExitStack() as undo:
            self._listen(undo)
            self._keep(undo)
            self._otlp.give_out(self._load_digest_key())
            self._collector = self._open_collector()
            self._engines = EngineMetrics(
                settings.engine_metrics,
                sample=self.metrics.sample,
                count=self.metrics.add,
                every_s=settings.engine_metrics_seconds,
            )
            self._undo = undo.pop_all()

    def _listen(self, undo: ExitStack) -> None:
        settings = self._settings
        self._traces = self._open_traces()
        if self._traces is not None:
            undo.callback(self._traces.close, _GRACE_S)
        self._passing_on = self._open_passing_on()
        if self._passing_on is not None:
            undo.callback(self._passing_on.close, _GRACE_S)
        self._http = self._open_http(settings.http, "--http", undo)
        limit = settings.max_message_bytes
        self._logs = LogsIntake(self._accept, self.metrics.add, max_bytes=limit, accept_evaluations=self._accept_spans)
        pass_on = self._passing_on.add if self._passing_on is not None else None
        self._spans = SpansIntake(self._accept_spans, self.metrics.add, max_bytes=limit, pass_on=pass_on)
        check_listening(settings.otlp_grpc, "--otlp-grpc")
        try:
            self._otlp = OtlpGrpc(self._logs, self._spans, settings.otlp_grpc, max_bytes=limit)
        except OSError:
            raise cannot_listen(settings.otlp_grpc, "--otlp-grpc") from None
        undo.callback(self._otlp.stop, 0)
        self._otlp_http = self._open_http(settings.otlp_http, "--otlp-http", undo)

    def _open_http(self, address: str, option: str, undo: ExitStack) -> http.HttpServer:
        host, port = split_address(address)
        try:
            server = http.HttpServer(host, port)
        except OSError:
            raise cannot_listen(address, option) from None
        undo.callback(server.stop)
        return server

    def _load_digest_key(self) -> str:
        try:
            return load_or_make(self._settings.data_dir.expanduser())
        except BadKey as error:
            raise Sorry(str(error)) from None
        except OSError as error:
            raise Sorry(
                f"the key for digests cannot be kept in {self._settings.data_dir} ({error.strerror}): "
                "choose another folder with --data-dir"
            ) from None

    def _accept(self, events: list[Event]) -> None:
        self._pipeline.accept(events)

    def _accept_spans(self, spans: list[AgentSpan]) -> None:
        self._pipeline.accept_spans(spans)

    def _keep(self, undo: ExitStack) -> None:
        settings = self._settings
        if not valid_writer(settings.store_writer):
            raise Sorry(
                f"--store-writer: {shown(settings.store_writer)} is no name: use letters, digits and _ . - only"
            )
        try:
            self._journal = Journal(
                settings.journal_dir,
                count=self.metrics.add,
                start_ns=max((c.now_ns for c in checkpoints.load(settings.journal_dir)), default=0),
                max_bytes=settings.journal_max_bytes,
            )
        except JournalUnavailable as error:
            raise Sorry(str(error)) from None
        except OSError as error:
            raise Sorry(str(cannot_write(settings.journal_dir, error))) from None
        undo.callback(self._journal.close)
        recorder = self._open_recorder()
        if recorder is not None:
            undo.callback(recorder.close)
        try:
            store = SummarisingWriter(
                settings.store_url,
                writer_id=settings.store_writer,
                now=time.time_ns,
                count=self._count_sessions,
                rest_s=settings.session_rest_seconds,
            )
        except StoreError as error:
            raise Sorry(f"{error} (--store)") from None
        self._rows = StoreRows(store, errors=StoreError, count=self.metrics.add, gauge=self.metrics.gauge)
        waits = AssemblySettings(
            grace_ns=int(settings.grace_seconds * SECOND),
            stuck_ns=int(settings.stuck_seconds * SECOND),
            proxy_ttl_ns=int(settings.proxy_ttl_seconds * SECOND),
            max_engine_names=settings.max_engine_names,
            fabric_window_ns=int(settings.fabric_window_seconds * SECOND),
        )
        self._pipeline = Pipeline(
            self._journal,
            settings.journal_dir,
            assembly=lambda: Assembler(waits),
            metrics=self.metrics,
            rows=self._rows,
            traces=self._traces,
            sampler=Sampler(settings.trace_ratio, int(settings.trace_slow_seconds * SECOND)),
            recording=recorder,
            engine_names=settings.engine_names,
            checkpoint_s=settings.checkpoint_seconds,
        )

    def _count_sessions(self, contributions: list[Contribution]) -> None:
        for sentence in self.metrics.add_all(contributions):
            _LOG.error("a count is passed over: %s", sentence)
            self.metrics.add("turnscope_exporter_assembly_errors_total", (), 1)

    def _open_collector(self) -> Collector | None:
        settings, host = self._settings, socket.gethostname()
        if not settings.fabric_seconds:
            return None
        return Collector(
            self._accept,
            node=settings.node or host,
            hosts=settings.node_hosts or [host],
            host=host,
            version=self._version,
            infiniband=settings.infiniband_dir,
            net=settings.net_dir,
            every_s=settings.fabric_seconds,
        )

    def _open_recorder(self) -> Recorder | None:
        path = self._settings.record
        if path is None:
            return None
        try:
            return Recorder(path.expanduser(), jsonlines.write, jsonlines.write_spans)
        except OSError as error:
            raise Sorry(
                f"the recording {path} cannot be written ({error.strerror}): choose another file with --record"
            ) from None

    def _open_traces(self) -> TraceExporter | None:
        endpoint = self._settings.export_otlp
        if endpoint is None:
            return None
        sender = self._open_sender(endpoint, self._settings.export_otlp_headers, "--export-otlp")
        return TraceExporter(sender, count=self.metrics.add, version=self._version, queue=self._settings.trace_queue)

    def _open_passing_on(self) -> PassingOn | None:
        endpoint = self._settings.export_spans
        if endpoint is None:
            return None
        sender = self._open_sender(endpoint, self._settings.export_spans_headers, "--export-spans")
        return PassingOn(sender, _protobuf, count=self.metrics.add)

    def _open_sender(self, endpoint: str, headers: str, option: str) -> TraceSender:
        try:
            return trace_sender(endpoint, split_pairs(headers, "NAME=VALUE"))
        except BadEndpoint as error:
            raise Sorry(f"{option}: {error}") from None

    # --- running --------------------------------------------------------------------------------------
    @property
    def otlp_port(self) -> int:
        """Where OTLP over gRPC is taken."""
        return self._otlp.port

    @property
    def otlp_http_port(self) -> int:
        """Where OTLP over HTTP is taken."""
        return self._otlp_http.port

    @property
    def http_port(self) -> int:
        """Where metrics and health are served."""
        return self._http.port

    def start(self) -> None:
        """Answer. What comes in while the journal is replayed is journalled and waits."""
        self._pipeline.start()
        self._http.start(
            http.app(
                metrics=self._metrics_page,
                not_ready=lambda: self._pipeline.failure or (_REPLAYING if self._pipeline.replaying else None),
                unhealthy=lambda: self._pipeline.failure or self._journal.trouble,
                troubles=self._troubles,
                status=lambda: msgspec.json.encode(self.status()),
            )
        )
        self._otlp.start()
        misdirected = Misdirected(self.metrics.add)
        self._otlp_http.start(
            otlp_http.app(self._logs, self._spans, max_bytes=self._settings.max_message_bytes, misdirected=misdirected),
            misdirected.protocol(),
        )
        if self._collector is not None:
            self._collector.start()
        self._engines.start()

    def close(self) -> None:
        """Take nothing more in, assemble and store what was acknowledged, send queued traces."""
        self._otlp.stop(_GRACE_S)
        self._otlp_http.stop()
        if self._collector is not None:
            self._collector.stop()
        self._engines.stop()
        self._pipeline.close()
        self._undo.close()

    def status(self) -> SystemStatus:
        """What ``/status`` says."""
        now = time.monotonic()
        assembly, lag = self._pipeline.status
        return SystemStatus(
            assembly=assembly,
            exporter=ExporterStatus(
                version=self._version,
                uptime_s=now - self._started_s,
                otlp_address=f"{self._settings.otlp_grpc.rpartition(':')[0]}:{self.otlp_port}",
                otlp_http_address=f"{self._settings.otlp_http.rpartition(':')[0]}:{self.otlp_http_port}",
                spans=int(self.metrics.total("turnscope_exporter_spans_received_total")),
                rejected_spans=int(self.metrics.total("turnscope_exporter_spans_rejected_total")),
                too_large_requests=int(self.metrics.total("turnscope_exporter_requests_refused_total", "too_large")),
                max_message_bytes=self._settings.max_message_bytes,
                misdirected={
                    what: n
                    for what in MISDIRECTED
                    if (n := int(self.metrics.total("turnscope_exporter_misdirected_total", what)))
                },
                passing_on_error=self._passing_on.trouble if self._passing_on else None,
                passing_on_endpoint=self._settings.export_spans,
                replaying=self._pipeline.replaying,
                lag_bytes=lag,
                rejected_records=int(self.metrics.total("turnscope_exporter_records_rejected_total")),
                journal_error=self._pipeline.failure or self._journal.trouble,
                journal_damage=self._damage(),
                store_error=self._rows.trouble,
                traces_error=self._traces.trouble if self._traces else None,
                traces_endpoint=self._settings.export_otlp,
                proxy_ttl_s=self._settings.proxy_ttl_seconds,
                last_scrape_s=None if self._scraped_s is None else now - self._scraped_s,
            ),
        )

    def _troubles(self) -> list[str]:
        found = [self._pipeline.failure, self._journal.trouble, self._damage(), self._rows.trouble]
        for what, sending in (("turn traces are", self._traces), ("spans are", self._passing_on)):
            if sending is not None and sending.trouble:
                found.append(f"{what} not taken: {sending.trouble}")
        return [trouble for trouble in found if trouble] + self._engines.troubles

    def _damage(self) -> str | None:
        damage = self._journal.damage
        if damage is None:
            return None
        return (
            f"{plural(damage.bytes, 'byte')} of the journal in {self._settings.journal_dir} could not be read and are "
            f"kept there (*{DAMAGED}, {plural(damage.files, 'file')})"
        )

    def _metrics_page(self, scraper: str | None, accept: str) -> tuple[bytes, str]:
        self._scraped_s = time.monotonic()
        self.metrics.gauge("turnscope_exporter_journal_failed", (), 1 if self._journal.trouble else 0)
        damage = self._journal.damage
        self.metrics.gauge("turnscope_exporter_journal_unreadable_bytes", (), damage.bytes if damage else 0)
        return exposition.render(self.metrics.points(scraper), accept)


def _protobuf(body: bytes) -> bytes:
    """A request in JSON as protobuf, whole."""
    return otlp_json.span_request(otlp_json.parse(body)).SerializeToString()
