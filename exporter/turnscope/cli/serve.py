"""``turnscope serve``: run the sidecar until it is told to stop."""

from __future__ import annotations

import logging
import signal
import threading
from typing import Final

import pyarrow as pa

from turnscope.cli.options import from_settings
from turnscope.cli.sidecar import Sidecar
from turnscope.config import Settings

_LOG: Final = logging.getLogger("turnscope")


def _serve(settings: Settings) -> None:
    """Run the sidecar: it takes in what the hooks in engines and proxy send, and spans of agents, and gives metrics,
    traces and a store.

    Start engines and proxy with TURNSCOPE_ENDPOINT=grpc://HOST:4317, agents with
    OTEL_EXPORTER_OTLP_ENDPOINT=http://HOST:4318, point Prometheus at http://HOST:9464/metrics, and
    ask 'turnscope doctor' whether all is well. The defaults suit one machine; each option may also be given by its
    environment variable. It runs until Ctrl-C. Everything received is on disk before it is acknowledged, so it may be
    stopped and started at any time.
    """
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%S%z"
    )
    for noisy in ("httpx", "httpcore", "uvicorn.error"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    told_to_stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told_to_stop.set())
    # Arrow's own pool keeps what a flush took; the system's gives it back, and what the interpreter has freed with it.
    pa.set_memory_pool(pa.system_memory_pool())
    sidecar = Sidecar(settings)
    sidecar.start()
    _LOG.info(
        "taking OTLP logs and traces on %s (gRPC) and http://%s, serving metrics on http://%s/metrics, journal in %s, "
        "store in %s%s%s",
        _with_port(settings.otlp_grpc, sidecar.otlp_port),
        _with_port(settings.otlp_http, sidecar.otlp_http_port),
        _with_port(settings.http, sidecar.http_port),
        settings.journal_dir,
        settings.store_url,
        f", sending turn traces to {settings.export_otlp}" if settings.export_otlp else "",
        f", passing spans on to {settings.export_spans}" if settings.export_spans else "",
    )
    told_to_stop.wait()
    _LOG.info("stopping: no more is taken in, what was is being stored")
    sidecar.close()


def _with_port(address: str, port: int) -> str:
    return f"{address.rpartition(':')[0]}:{port}"


_serve.__name__ = "serve"
serve = from_settings(_serve)
