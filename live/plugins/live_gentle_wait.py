"""Test only: vLLM's processes wait for each other asleep, so that two engines fit on two cores.

They wait for messages in shared memory by yielding in a tight loop, an engine that holds blocks for a next turn steps
all the time, and NIXL's progress thread never rests: a pair then takes both cores, and the sidecar, the proxy and the
other engine's transfers wait for whole scheduler slices. On a machine with a core for each of them that is right; here
it is most of the latency.
"""

from __future__ import annotations

import time
from typing import Any

PAUSE_S = 0.0002
PROGRESS_US = 500


def load() -> None:
    """Called by vLLM in every process, sometimes more than once."""
    from vllm.distributed import nixl_utils
    from vllm.distributed.device_communicators import shm_broadcast

    shm_broadcast.sched_yield = _pause
    original = nixl_utils._load_nixl_attr
    if hasattr(original, "gentle"):
        return

    def gentle(name: str) -> Any:
        value = original(name)
        if name == "NixlWrapper" and value is not None:
            _rest_between_progress(value)
        return value

    gentle.gentle = True  # type: ignore[attr-defined]
    nixl_utils._load_nixl_attr = gentle


def _pause() -> None:
    time.sleep(PAUSE_S)


def _rest_between_progress(agent: Any) -> None:
    """NIXL's Python agent asks for a progress thread without any delay, whatever its configuration."""
    bindings: Any = agent.__init__.__globals__["nixlBind"]
    config: Any = bindings.nixlAgentConfig

    class Config(config):  # type: ignore[misc]
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, PROGRESS_US if name == "pthrDelay" else value)

    bindings.nixlAgentConfig = Config
