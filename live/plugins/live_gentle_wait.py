"""Test only: vLLM's processes wait for each other asleep, so that two engines fit on two cores.

They wait for messages in shared memory by yielding in a tight loop, and an engine that holds blocks for a next turn
steps all the time: a pair then takes both cores, and the sidecar, the proxy and the other engine's transfers wait
for whole scheduler slices. On a machine with a core for each of them that is right; here it is most of the latency.
"""

from __future__ import annotations

import time

PAUSE_S = 0.0002


def load() -> None:
    """Called by vLLM in every process, sometimes more than once."""
    from vllm.distributed.device_communicators import shm_broadcast

    shm_broadcast.sched_yield = _pause


def _pause() -> None:
    time.sleep(PAUSE_S)
