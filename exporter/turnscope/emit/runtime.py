"""A hook's state in one process: settings, rings, watches and the background thread that serves them."""

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
from turnscope.emit.clock import clock_id
from turnscope.emit.pacing import Pacer
from turnscope.emit.ring import Rings
from turnscope.emit.secret import Secret
from turnscope.emit.settings import Settings
from turnscope.emit.watch import Job, Watch
from turnscope.model import EngineState

LOG: Final = logging.getLogger("vllm.turnscope")
"""Below vLLM's own logger: its handlers and levels are the ones people look at."""
INTERVAL_S: Final = 0.2
"""Between two looks at whether it is time for a round."""
CLOSE_S: Final = 1.5


class Runtime:
    """One per process. Starts its thread when the first watch is added; nothing before."""

    def __init__(self, settings: Settings, log: logging.Logger = LOG) -> None:
        self.settings = settings
        self.log = log
        self.rings = Rings()
        self.watches: list[Watch] = []
        self.jobs: list[Job] = []
        """What the background thread does besides, once it has emptied the rings."""
        self.pause = Pacer()
        """Of the background thread."""
        self.secret = Secret(settings.digest_key)
        self.pid = os.getpid()
        self._id = secrets.token_hex(8)
        self._clock = clock_id()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def emitter(self, kind: str) -> model.Emitter:
        """This process as ``engine``, ``worker`` or ``proxy``: in one process they share the id and the numbers."""
        return model.Emitter(
            id=self._id,
            kind=kind,
            pid=self.pid,
            host=socket.gethostname(),
            clock=self._clock,
            version=importlib.metadata.version("turnscope"),
        )

    def add(self, watch: Watch) -> None:
        """Begin to serve ``watch``: say so in the log, once per process, and to the sidecar."""
        self.watches.append(watch)
        self.rings["engine"].pusher(watch.state)(EngineState(state="started", wrapped=list(watch.wrapped)))
        if self._thread is None:
            self.log.info("turnscope: watching %s, sending to %s", _described(watch), self.settings.endpoint)
            self._thread = threading.Thread(target=self._run, name="turnscope", daemon=True)
            self._thread.start()
            # Children of multiprocessing leave without running atexit when they were forked.
            atexit.register(self.stop)
            multiprocessing.util.Finalize(None, self.stop, exitpriority=100)

    @property
    def stopped(self) -> bool:
        """It has sent its last."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Send what is left, for at most ``CLOSE_S``; later calls do nothing."""
        if self._thread is None or self._stop.is_set() or os.getpid() != self.pid:
            return
        self._stop.set()
        self._thread.join(CLOSE_S + 0.5)

    def _run(self) -> None:
        try:
            # What encodes and sends is loaded here, beside the engine's own start.
            from turnscope.emit.emitter import Emitter
            from turnscope.emit.sender import GrpcSender

            emitter = Emitter(
                settings=self.settings,
                rings=self.rings,
                watches=self.watches,
                jobs=self.jobs,
                sender=GrpcSender(self.settings.endpoint, self.secret),
                log=self.log,
                pause=self.pause,
            )
        except Exception as error:
            self.log.warning(
                "turnscope: off, because it cannot send: %r. Is it installed with its dependencies?", error
            )
            for watch in self.watches:
                watch.guard.broken = True
                watch.guard.on = False
            return
        while not self._stop.wait(INTERVAL_S):
            emitter.cycle(time.monotonic_ns())
        emitter.close(time.monotonic_ns() + int(CLOSE_S * 1e9))


def _described(watch: Watch) -> str:
    what = " and ".join(watch.wrapped)
    engine = watch.engine
    if engine is None:
        return what
    return f"{what} of engine {engine.id} ({engine.role}, {engine.connector or 'no connector'})"


_runtimes: dict[int, Runtime] = {}


def runtime(settings: Settings, log: logging.Logger = LOG) -> Runtime:
    """This process's runtime; a forked child gets its own, and so does what begins again after a stop."""
    found = _runtimes.get(os.getpid())
    if found is None or found.stopped:
        found = _runtimes[os.getpid()] = Runtime(settings, log)
    return found
