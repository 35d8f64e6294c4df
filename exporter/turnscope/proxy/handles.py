"""``kv_transfer_params`` as they pass through a proxy."""

from __future__ import annotations

from typing import Any

from turnscope.model import Handle


def handle_of(params: Any) -> Handle | None:
    """The handle in ``params``; None when it names no engine and request, as in a first turn's prefill request."""
    if not isinstance(params, dict):
        return None
    engine_id, request_id = params.get("remote_engine_id"), params.get("remote_request_id")
    if not (isinstance(engine_id, str) and engine_id and isinstance(request_id, str) and request_id):
        return None
    tokens, expiry = params.get("remote_num_tokens"), params.get("remote_blocks_expiry_time")
    return Handle(
        engine_id=engine_id,
        request_id=request_id,
        tokens=tokens if isinstance(tokens, int) else None,
        blocks=_blocks(params.get("remote_block_ids")),
        expiry_s=float(expiry) if isinstance(expiry, int | float) else None,
    )


def _blocks(ids: Any) -> int | None:
    """How many blocks: a list of ids, or one such list for each KV cache group."""
    if not isinstance(ids, list):
        return None
    return sum(len(group) if isinstance(group, list) else 1 for group in ids)
