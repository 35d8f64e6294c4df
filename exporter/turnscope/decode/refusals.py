"""What a refusal over gRPC asks of an OTLP sender: to try again, or never to."""

from __future__ import annotations

from typing import Any, Final

_TRANSIENT: Final = frozenset({"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"})
_DETAILS: Final = "grpc-status-details-bin"
"""Of the trailing metadata: a serialised ``google.rpc.Status``, which names the type of each of its details."""
_RETRY_INFO: Final = b"google.rpc.RetryInfo"


def asks_again(error: Any) -> bool:
    """Whether the request of a failed call (``grpc.RpcError``) is to be sent again.

    ``RESOURCE_EXHAUSTED`` is a busy receiver's word as well as that of one to whom the message is too large, for good:
    only with a ``RetryInfo`` does OTLP ask to repeat it.
    """
    name = error.code().name
    if name == "RESOURCE_EXHAUSTED":
        return _RETRY_INFO in dict(error.trailing_metadata() or ()).get(_DETAILS, b"")
    return name in _TRANSIENT
