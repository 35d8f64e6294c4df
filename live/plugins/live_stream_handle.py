"""Test only: make vLLM's streamed chat answers carry the KV handle that its whole answers carry.

vLLM 0.32 leaves ``kv_transfer_params`` out of streamed answers, so a proxy that streams from D never learns
the handle; deployments patch it in. This is such a patch, switched per request: only a request with
``"vllm_xargs": {"live_stream_handle": 1}`` gets the extra chunk, just before ``[DONE]``.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import AsyncIterator
from typing import Any

MARKER = "live_stream_handle"
_DONE = "data: [DONE]"


def load() -> None:
    """Called by vLLM in every process; harmless where there is no API server, and when called twice."""
    from vllm.entrypoints.openai.chat_completion.serving import OpenAIServingChat

    original = OpenAIServingChat.chat_completion_stream_generator
    if getattr(original, "live_stream_handle", False):
        return

    @functools.wraps(original)
    async def with_handle(
        self: Any, request: Any, result_generator: Any, request_id: str, model_name: str, *args: Any, **kwargs: Any
    ) -> AsyncIterator[str]:
        if not (request.vllm_xargs or {}).get(MARKER):
            async for text in original(self, request, result_generator, request_id, model_name, *args, **kwargs):
                yield text
            return
        seen: list[dict[str, Any]] = []

        async def watched() -> AsyncIterator[Any]:
            async for result in result_generator:
                if result.kv_transfer_params:
                    seen[:] = [result.kv_transfer_params]
                yield result

        async for text in original(self, request, watched(), request_id, model_name, *args, **kwargs):
            if seen and text.startswith(_DONE):
                yield f"data: {json.dumps(_chunk(request_id, model_name, seen[0]))}\n\n"
            yield text

    with_handle.live_stream_handle = True  # type: ignore[attr-defined]
    OpenAIServingChat.chat_completion_stream_generator = with_handle


def _chunk(request_id: str, model: str, handle: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": request_id,
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model,
        "choices": [],
        "kv_transfer_params": handle,
    }
