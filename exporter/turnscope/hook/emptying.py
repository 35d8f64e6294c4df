"""The prefix cache of an engine, emptied on request: what was filed in it before is not found again.

vLLM's scheduler has the answer of its block pools from its ``kv_cache_manager``. Its own also says whether a
connector's cache was emptied, which is another one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from turnscope.emit.guard import Guard
from turnscope.model import Emptied


def watch_emptying(manager: Any, guard: Guard, push: Callable[[Emptied], None]) -> bool:
    """Wrap ``reset_prefix_cache`` on the instance; ``push(Emptied())`` each time it answers that it was done: it is
    refused while any block is in use. False where this engine has nothing to look at."""
    reset = getattr(manager, "reset_prefix_cache", None)
    if reset is None:
        return False

    @wraps(reset)
    def reset_prefix_cache(*args: Any, **kwargs: Any) -> Any:
        emptied = reset(*args, **kwargs)
        if emptied and guard.on:
            try:
                push(Emptied())
            except Exception as error:
                guard.failed(error)
        return emptied

    manager.reset_prefix_cache = reset_prefix_cache
    return True
