"""What comes to the port for OTLP over HTTP and is something else: gRPC, TLS, or a post to a path that is none.

Nothing of it can be taken in, and senders rarely say why. So it is counted, and the first of each kind is logged;
``turnscope doctor`` says what to set.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from turnscope.catalog.exporter import GRPC, PATH, TLS
from turnscope.model import Count

_LOG: Final = logging.getLogger(__name__)
_BEGINS: Final = {b"PRI * HTTP/2.0": GRPC, b"\x16\x03": TLS}
"""An HTTP/2 client's first bytes (RFC 9113, 3.4), and those of a TLS handshake (RFC 8446, 5.1)."""
_ANSWER: Final = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
"""Plain text: from it clients of gRPC and of TLS see that what they speak is not spoken here."""
_SAYS: Final = {
    GRPC: "it speaks gRPC, and this is the port for OTLP over HTTP",
    TLS: "it speaks TLS, and this port does not",
    PATH: "OTLP is taken at /v1/traces and /v1/logs, and nowhere else",
}


class Misdirected:
    """Counts them, and logs the first of each kind. Thread-safe if ``count`` is."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._said: set[str] = set()
        self._saying = threading.Lock()

    def tell(self, what: str, sender: object) -> None:
        """``what`` came from ``sender``: (host, port), if that is known."""
        self._count("turnscope_exporter_misdirected_total", (what,), 1)
        with self._saying:
            first = what not in self._said
            self._said.add(what)
        if first:
            host = sender[0] if isinstance(sender, tuple) and sender else "a client"
            _LOG.warning("nothing can be taken in of what %s sends: %s (see turnscope doctor)", host, _SAYS[what])

    def protocol(self) -> type[asyncio.Protocol]:
        """Uvicorn's protocol for connections that begin as HTTP/1.1; others are told, answered and closed."""
        tell = self.tell

        class Watched(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
            _begun = False

            def data_received(self, data: bytes) -> None:
                what = None if self._begun else _foreign(data)
                self._begun = True
                if what is None:
                    super().data_received(data)
                else:
                    tell(what, self.transport.get_extra_info("peername"))
                    self.transport.write(_ANSWER)
                    self.transport.close()

        return Watched


def _foreign(data: bytes) -> str | None:
    return next((what for begin, what in _BEGINS.items() if data.startswith(begin)), None)
