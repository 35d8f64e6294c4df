"""The HTTP side of the sidecar: ``/metrics``, ``/healthz``, ``/readyz`` and ``/status``."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

_SCRAPE_HEADER: Final = "x-prometheus-scrape-timeout-seconds"
"""Prometheus and everything that scrapes like it send this; people and scripts do not."""
_INDEX: Final = """turnscope sidecar

/metrics   for Prometheus
/healthz   503 while nothing can be taken in
/readyz    503 also while the journal is replayed after a start; both say why
/status    what is heard of hooks, and the sidecar's own health (JSON; `turnscope doctor` explains it)
"""


def app(
    *,
    metrics: Callable[[str | None, str], tuple[bytes, str]],
    not_ready: Callable[[], str | None],
    unhealthy: Callable[[], str | None],
    troubles: Callable[[], list[str]],
    status: Callable[[], bytes],
) -> Starlette:
    """The routes. ``metrics`` takes (scraper, Accept header); ``not_ready`` and ``unhealthy`` say why, or None."""

    def get_metrics(request: Request) -> Response:
        if (why := not_ready()) is not None:
            return PlainTextResponse(why + "\n", 503, headers={"Retry-After": "5"})
        scraper = None
        if _SCRAPE_HEADER in request.headers:
            host = request.client.host if request.client else ""
            scraper = f"{host} {request.headers.get('user-agent', '')}"
        page, content_type = metrics(scraper, request.headers.get("accept", ""))
        return Response(page, media_type=content_type)

    def get_healthz(_: Request) -> Response:
        why = unhealthy()
        lines = troubles() or ["ok"]
        return PlainTextResponse("\n".join(lines) + "\n", 503 if why else 200)

    def get_readyz(_: Request) -> Response:
        why = not_ready() or unhealthy()
        return PlainTextResponse((why or "ready") + "\n", 503 if why else 200)

    def get_status(_: Request) -> Response:
        return Response(status(), media_type="application/json")

    def get_index(_: Request) -> Response:
        return PlainTextResponse(_INDEX)

    return Starlette(
        routes=[
            Route("/metrics", get_metrics),
            Route("/healthz", get_healthz),
            Route("/readyz", get_readyz),
            Route("/status", get_status),
            Route("/", get_index),
        ],
        middleware=[Middleware(GZipMiddleware, minimum_size=1024)],
    )


class HttpServer:
    """Serves ``app`` from a thread of its own on ``host:port`` (port 0 takes a free one).

    Raises ``OSError`` if the address is taken.
    """

    def __init__(self, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, port))
            # Two sockets may be bound to one address with SO_REUSEADDR until one of them listens.
            self._socket.listen(128)
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self, application: Starlette, protocol: type[asyncio.Protocol] | None = None) -> None:
        """Begin to answer. ``protocol``: in place of uvicorn's own."""
        config = uvicorn.Config(
            application,
            lifespan="off",
            log_config=None,
            access_log=False,
            ws="none",
            loop="asyncio",
            http=protocol or "auto",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="turnscope-http", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Finish what is being answered and close the port."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(5)
        self._socket.close()
