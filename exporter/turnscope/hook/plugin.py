"""vLLM's entry point, called in each of its processes, sometimes more than once.

Without ``TURNSCOPE_ENDPOINT`` it returns at once. With it, it only leaves word: vLLM's scheduler and connector
factory are wrapped when the process imports them, and a thread starts when one of their objects is made.
"""

from __future__ import annotations

import os


def load() -> None:
    """Never raises: a failure here would end the engine's process."""
    if not os.environ.get("TURNSCOPE_ENDPOINT", "").strip():
        return
    try:
        from turnscope.hook.activation import activate

        activate(os.environ)
    except Exception as error:
        import logging

        logging.getLogger("vllm.turnscope").warning("turnscope: off in this process: %s", error)
