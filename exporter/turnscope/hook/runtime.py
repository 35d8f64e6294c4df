"""The hook's state in one process: settings, rings, watches and the background thread that serves them."""

from __future__ import annotations

import atexit
import importlib.metadata
import logging
import multiprocessing.util
import os
import secrets
import socket
import threading
import time
from typing import Final

from turnscope import model
from turnscope.hook.ring import Rings
from turnscope.hook.settings import Settings
from turnscope.hook.watch import Watch
from turnscope.model import EngineState

LOG: Final = logging.getLogger("vllm.turnscope")
"""Below vLLM's own logger: its handlers and levels are the ones people look at."""
INTERVAL_S: Final = 0.2
CLOSE_S: Final = 1.5


class Runtime:
    """One per process. Starts its thread when the first watch is added; nothing before."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.rings = Rings()
        self.watches: list[Watch] = []
        self.pid = os.getpid()
        self._id = secrets.token_hex(8)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def emitter(self, kind: str) -> model.Emitter:
        """This process as ``engine`` or ``worker``: in one process they share the id and the numbers."""
        return model.Emitter(
            id=self._id,
            kind=kind,
            pid=self.pid,
            host=socket.gethostname(),
            version=importlib.metadata.version("turnscope"),
        )

    def add(self, watch: Watch) -> None:
        """Begin to serve ``watch``: say so in the log, once per process, and to the sidecar."""
        self.watches.append(watch)
        self.rings["engine"].push(watch, _itself, EngineState(state="started", wrapped=list(watch.wrapped)))
        if self._thread is None:
            LOG.info(
                "turnscope: watching %s of engine %s (%s, %s), sending to %s",
                " and ".join(watch.wrapped),
                watch.engine.id,
                watch.engine.role,
                watch.engine.connector or "no connector",
                self.settings.endpoint,
            )
            self._thread = threading.Thread(target=self._run, name="turnscope", daemon=True)
            self._thread.start()
            # Children of multiprocessing leave without running atexit when they were forked.
            atexit.register(self.stop)
            multiprocessing.util.Finalize(None, self.stop, exitpriority=100)

    def stop(self) -> None:
        """Send what is left, for at most ``CLOSE_S``; later calls do nothing."""
        if self._thread is None or self._stop.is_set() or os.getpid() != self.pid:
            return
        self._stop.set()
        self._thread.join(CLOSE_S + 0.5)

    def _run(self) -> None:
        try:
            # What encodes and sends is loaded here, beside the engine's own start.
            from turnscope.hook.emitter import Emitter
            from turnscope.hook.sender import GrpcSender

            emitter = Emitter(
                settings=self.settings,
                rings=self.rings,
                watches=self.watches,
                sender=GrpcSender(self.settings.endpoint),
                log=LOG,
            )
        except Exception as error:
            LOG.warning("turnscope: off, because it cannot send: %r. Is it installed with its dependencies?", error)
            for watch in self.watches:
                watch.guard.broken = True
                watch.guard.on = False
            return
        while not self._stop.wait(INTERVAL_S):
            emitter.cycle(time.monotonic_ns())
        emitter.close(time.monotonic_ns() + int(CLOSE_S * 1e9))


def _itself(body: EngineState) -> EngineState:
    return body


_runtimes: dict[int, Runtime] = {}


def runtime(settings: Settings) -> Runtime:
    """This process's runtime; a forked child gets its own."""
    return _runtimes.setdefault(os.getpid(), Runtime(settings))
