"""vLLM's loosely typed values to our fields. Nothing here raises for a strange value."""

from __future__ import annotations

import math
from typing import Any, Final

from turnscope.model import Handle

_LIMIT: Final = 2**60
"""What the codec reads back as a count; as times in nanoseconds it is 36 years."""


def count(value: Any) -> int | None:
    """An integer as the engine reported it, negative ones too; None for None, NaN and what is no number."""
    if type(value) is int:
        return value if -_LIMIT < value < _LIMIT else None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if math.isfinite(number) and abs(number) < _LIMIT else None


def seconds_to_ns(value: Any) -> int | None:
    """A time in seconds to nanoseconds; None for what is no finite number."""
    try:
        number = float(value) * 1e9
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if math.isfinite(number) and abs(number) < _LIMIT else None


def text(value: Any) -> str | None:
    """A non-empty string that a message can carry, or None. Clients choose some ids: lone surrogates become ``?``."""
    return str(value).encode("utf-8", "replace").decode() if value is not None and value != "" else None


def block_counts(value: Any) -> list[int] | None:
    """Blocks per group of a handle's ``remote_block_ids``: a list of lists, or a flat list in older engines."""
    if not isinstance(value, list | tuple):
        return None
    if value and not isinstance(value[0], list | tuple):
        return [len(value)]
    return [len(group) if isinstance(group, list | tuple) else 0 for group in value]


def named(params: dict[str, Any]) -> bool:
    """Whether the parameters name a remote request."""
    return bool(params.get("remote_engine_id")) and bool(params.get("remote_request_id"))


def handle(params: Any) -> Handle | None:
    """The handle in ``kv_transfer_params``, or None when they name no remote request."""
    if not isinstance(params, dict):
        return None
    if not named(params):
        return None
    blocks = block_counts(params.get("remote_block_ids"))
    expiry_ns = seconds_to_ns(params.get("remote_blocks_expiry_time"))
    return Handle(
        engine_id=text(params["remote_engine_id"]) or "",
        request_id=text(params["remote_request_id"]) or "",
        tokens=count(params.get("remote_num_tokens")),
        blocks=None if blocks is None else sum(blocks),
        expiry_s=None if expiry_ns is None else expiry_ns / 1e9,
    )
