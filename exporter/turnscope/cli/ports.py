"""Ports of this machine."""

from __future__ import annotations

import errno
import os
import socket

from turnscope.cli.errors import Sorry
from turnscope.config import split_address


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


def cannot_listen(address: str, option: str) -> Sorry:
    """The sentence for ``host:port`` that a server could not take: libraries do not tell why, so it is tried again."""
    host, port = split_address(address)
    why, advice = "the address cannot be used", "choose another"
    try:
        family, kind, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            probe.listen()
    except socket.gaierror:
        why, advice = f"there is no host {host}", "use 127.0.0.1, 0.0.0.0 or another of this machine"
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        advice = {
            errno.EADDRINUSE: "stop what uses it or choose another address",
            errno.EADDRNOTAVAIL: "use 127.0.0.1, 0.0.0.0 or another address of this machine",
            errno.EACCES: "choose a port from 1024 on",
        }.get(error.errno or 0, advice)
    return Sorry(f"cannot listen on {address} ({why}): {advice} with {option}")
