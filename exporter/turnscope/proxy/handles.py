"""What engines, and clients in their place, write as numbers and as ``kv_transfer_params``: of any type at all."""

from __future__ import annotations

from typing import Any

from turnscope.decode.codec import MAX_INT
from turnscope.model import Handle


def count(value: Any) -> int | None:
    """How many of something; None for what is no such number, or more than an event can carry."""
    return value if type(value) is int and 0 <= value < MAX_INT else None


def handle_of(params: Any) -> Handle | None:
    """The handle in ``params``; None when it names no engine and request, as in a first turn's prefill request."""
    if not isinstance(params, dict):
        return None
    engine_id, request_id = params.get("remote_engine_id"), params.get("remote_request_id")
    if not (isinstance(engine_id, str) and engine_id and isinstance(request_id, str) and request_id):
        return None
    return Handle(
        engine_id=engine_id,
        request_id=request_id,
        tokens=count(params.get("remote_num_tokens")),
        blocks=_blocks(params.get("remote_block_ids")),
        expiry_s=_seconds(params.get("remote_blocks_expiry_time")),
    )


def _seconds(value: Any) -> float | None:
    return float(value) if type(value) is float or count(value) is not None else None


def _blocks(ids: Any) -> int | None:
    """How many blocks: a list of ids, or one such list for each KV cache group."""
    if not isinstance(ids, list):
        return None
    return sum(len(group) if isinstance(group, list) else 1 for group in ids)
