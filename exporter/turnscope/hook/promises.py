"""Requests that their engine will never run: it promised a load and queued no read.

The promise is kept or broken in ``update_state_after_alloc``, which vLLM calls once each time it admits a request, not
at every step. A request whose promise is broken parks there, in no gauge, with running = waiting = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from turnscope.emit.guard import Guard
from turnscope.semconv import StuckCause


def watch_promises(side: Any, guard: Guard, push: Callable[[tuple[Any, ...]], None]) -> bool:
    """Wrap the method on the scheduler's half of a NIXL connector; ``push((id, tokens, params, preemptions))`` for each
    broken promise to a prefill request. False where this engine has nothing to look at."""
    update = getattr(side, "update_state_after_alloc", None)
    if update is None or not hasattr(side, "_reqs_need_recv"):
        return False

    @wraps(update)
    def update_state_after_alloc(request: Any, blocks: Any, num_external_tokens: int) -> Any:
        result = update(request, blocks, num_external_tokens)
        if num_external_tokens and guard.on:
            try:
                params = request.kv_transfer_params
                if params and params.get("do_remote_decode") and request.request_id not in side._reqs_need_recv:
                    push((request.request_id, num_external_tokens, params, request.num_preemptions))
            except Exception as error:
                guard.failed(error)
        return result

    side.update_state_after_alloc = update_state_after_alloc
    return True


def cause(side: Any, bidirectional: bool | None, params: dict[str, Any], preemptions: int) -> StuckCause:
    """Why the read was not queued, from vLLM's own conditions: the feature is off, blocks go through host memory, or
    the handle had been taken up at an earlier admission, which only preemption or a failed load lets follow."""
    if bidirectional is False:
        return StuckCause.BIDIRECTIONAL_OFF
    if getattr(side, "use_host_buffer", False):
        return StuckCause.HOST_BUFFER
    if params.get("_remote_blocks_processed"):
        return StuckCause.PREEMPTED if preemptions else StuckCause.LOAD_FAILED
    return StuckCause.UNKNOWN
