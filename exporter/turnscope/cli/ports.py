"""Ports of this machine."""

from __future__ import annotations

import errno
import socket


def first_free(wanted: int) -> int:
    """``wanted`` if nobody listens on it on loopback, else one that is free now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
