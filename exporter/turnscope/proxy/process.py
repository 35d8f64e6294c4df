"""The proxy hook in one process: made at the first request or start-up of a watched application, or not at all."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

from turnscope.emit.guard import Guard
from turnscope.emit.pacing import give_way
from turnscope.emit.ring import Rings
from turnscope.emit.runtime import Runtime, runtime
from turnscope.emit.secret import Secret
from turnscope.emit.settings import SettingsError, read
from turnscope.history.digests import Key
from turnscope.model import Attempt, Emitter, EngineState
from turnscope.proxy.answer import PLAIN_LIMIT
from turnscope.proxy.messages import Prompts, Untold
from turnscope.proxy.sessions import ResponseChain
from turnscope.proxy.spans import Tracing
from turnscope.proxy.sse import EVENT_LIMIT

FLUSH_MS: Final = 1_000


class ProxyHook:
    """What each request needs, and what the background thread asks of a watch."""

    engine: None = None

    def __init__(
        self,
        *,
        rings: Rings,
        emitter: Emitter,
        wrapped: list[str],
        environment: Mapping[str, str],
        log: logging.Logger,
        clock: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
        secret: Secret | None = None,
        pause: Callable[[], None] = give_way,
    ) -> None:
        """``secret``: under which messages are digested; without one they are not. ``pause``: the background
        thread's."""
        self.guard = Guard("proxy hook")
        self.emitter = emitter
        self.wrapped = wrapped
        self.tracing = Tracing(environment, emitter.version, log)
        self._log = log
        self._pause = pause
        self._said_unread = False
        self.chain = ResponseChain()
        self.prompts = Prompts(_key_of(secret) if secret is not None else lambda: None)
        self.emit: Callable[[Untold], None] = rings["attempt"].pusher(self.attempt)
        self.open: dict[str, None] = {}
        self.clock = clock
        self.wall_ns = wall_ns
        self.new_id = new_id

    def say_unread(self) -> None:
        """Parts of an engine's answer were passed on and not read; said once."""
        if not self._said_unread:
            self._said_unread = True
            self._log.warning(
                "turnscope: part of an engine's answer was not read, because an event is over %d MiB, the whole over "
                "%d MiB, or its content encoding unknown: handle, finish reason and tool calls may be missing",
                EVENT_LIMIT >> 20,
                PLAIN_LIMIT >> 20,
            )

    def attempt(self, untold: Untold) -> Attempt:
        """The whole event, made in the background: an entry is tied to its watch by the method that builds it."""
        return self.prompts.fill(untold, self._pause)

    def state(self, body: EngineState) -> EngineState:
        """The body itself."""
        return body

    def open_requests(self) -> list[str]:
        """Turn ids begun and not ended, oldest first."""
        return list(self.open)

    def idle_requests(self, pause: Callable[[], None]) -> list[tuple[str, str]]:  # noqa: ARG002
        """None: a proxy computes nothing."""
        return []

    def forget(self) -> None:
        """The hook is off: the ends of what runs will not be seen."""
        self.open.clear()


def _key_of(secret: Secret) -> Callable[[], Key | None]:
    """The key that ``secret`` makes, made anew only when the sidecar gives another secret."""
    made: dict[bytes, Key] = {}

    def key() -> Key | None:
        value = secret.value
        if value is None:
            return None
        if value not in made:
            made.clear()
            made[value] = Key(value)
        return made[value]

    return key


class Process:
    """The hook and what sends for it."""

    def __init__(self, sending: Runtime, wrapped: list[str], environment: Mapping[str, str]) -> None:
        self.pid = os.getpid()
        self.sending = sending
        self.hook = ProxyHook(
            rings=sending.rings,
            emitter=sending.emitter("proxy"),
            wrapped=wrapped,
            environment=environment,
            log=sending.log,
            secret=sending.secret if sending.settings.digests else None,
            pause=sending.pause,
        )
        if sending.settings.digests:
            sending.secret.want()
        sending.jobs.append(self.hook.prompts)
        sending.add(self.hook)

    @property
    def usable(self) -> bool:
        """Not inherited by a fork, and not stopped."""
        return self.pid == os.getpid() and not self.sending.stopped

    def stop(self) -> None:
        """The application shuts down: send what is left, for at most two seconds. Servers may end their process by
        a signal right after this."""
        self.hook.tracing.flush(FLUSH_MS)
        self.sending.stop()


class _Here:
    process: Process | None = None
    refused: bool = False


WRAPPED: Final[list[str]] = []
"""Names of the libraries patched so far."""


def current() -> Process | None:
    """This process's hook, made now if need be; None without ``TURNSCOPE_ENDPOINT`` or with a wrong one."""
    process = _Here.process
    if process is not None and process.usable:
        return process
    if _Here.refused:
        return None
    try:
        settings = read(os.environ)
        if settings is not None:
            _Here.process = Process(runtime(settings, console()), WRAPPED, os.environ)
            return _Here.process
    except SettingsError as error:
        console().warning("turnscope: off in this process: %s", error)
    except Exception as error:
        console().warning("turnscope: off in this process, the application runs without it: %r", error)
    _Here.refused = True
    return None


def console() -> logging.Logger:
    """Where the hook says its few lines: the application's logging if it listens to ``turnscope``, else stderr."""
    log = logging.getLogger("turnscope")
    if not log.hasHandlers():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
    if log.level == logging.NOTSET:
        log.setLevel(logging.INFO)
    return log
