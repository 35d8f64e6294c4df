"""Why something received was not taken in, and what the sender is told: the one place that maps the two.

OTLP senders drop what is refused for good and repeat what is refused for now.
"""

from __future__ import annotations

from typing import Final

import grpc


class Refused(Exception):
    """Base of all. The message is one sentence for the sender's log."""

    reason = "invalid"
    """Value of the label ``reason``."""


class Invalid(Refused):
    """Permanent: it cannot be read, now or later."""


class TooLarge(Refused):
    """Permanent: send smaller batches."""

    reason = "too_large"


class Unsupported(Refused):
    """Permanent: another type or encoding than OTLP's over HTTP."""

    reason = "unsupported"


class Unavailable(Refused):
    """For now: try again."""

    reason = "unavailable"


_GRPC: Final[dict[type[Refused], grpc.StatusCode]] = {
    Invalid: grpc.StatusCode.INVALID_ARGUMENT,
    # Without RetryInfo this code means "do not repeat".
    TooLarge: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Unsupported: grpc.StatusCode.INVALID_ARGUMENT,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
}


def grpc_status(error: Refused) -> grpc.StatusCode:
    """The gRPC code for ``error``."""
    return _GRPC[type(error)]


_HTTP: Final[dict[type[Refused], int]] = {Invalid: 400, TooLarge: 413, Unsupported: 415, Unavailable: 503}


def http_status(error: Refused) -> tuple[int, int]:
    """The code for the answer's body (``google.rpc.Status``) and the HTTP status for ``error``."""
    return int(grpc_status(error).value[0]), _HTTP[type(error)]
