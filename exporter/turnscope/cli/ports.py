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


def check_listening(address: str, option: str) -> None:
    """Raise the sentence of ``cannot_listen`` already now: for servers that write to stderr what they cannot have."""
    if _trouble(address) is not None:
        raise cannot_listen(address, option)


def cannot_listen(address: str, option: str) -> Sorry:
    """The sentence for ``host:port`` that a server could not take: libraries do not tell why, so it is tried again."""
    why, advice = _trouble(address) or ("the address cannot be used", "choose another")
    return Sorry(f"cannot listen on {address} ({why}): {advice} with {option}")


def _trouble(address: str) -> tuple[str, str] | None:
    """Why nothing can listen on ``host:port`` now, and what to do; None when something can."""
    host, port = split_address(address)
    try:
        family, kind, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            probe.listen()
    except socket.gaierror:
        return f"there is no host {host}", "use 127.0.0.1, 0.0.0.0 or another of this machine"
    except OSError as error:
        advice = {
            errno.EADDRINUSE: "stop what uses it or choose another address",
            errno.EADDRNOTAVAIL: "use 127.0.0.1, 0.0.0.0 or another address of this machine",
            errno.EACCES: "choose a port from 1024 on",
        }
        return os.strerror(error.errno) if error.errno else str(error), advice.get(error.errno or 0, "choose another")
    return None
