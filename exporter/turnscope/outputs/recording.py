"""``serve --record FILE``: what was received, as OTLP JSON lines, gzipped when the name ends in ``.gz``."""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from turnscope.model import AgentSpan, Event

_LOG: Final = logging.getLogger(__name__)


class Recorder:
    """Appends whole lines to ``path``; ``encode`` makes one of events and their arrival time, ``encode_spans`` one of
    spans.

    Raises ``OSError`` at once when the file cannot be written; a later failure ends the recording after the last
    whole line, with one sentence in the log.
    """

    def __init__(
        self,
        path: Path,
        encode: Callable[[list[Event], int], bytes],
        encode_spans: Callable[[list[AgentSpan]], bytes],
    ) -> None:
        self._path = path
        self._encode = encode
        self._encode_spans = encode_spans
        self._fd: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)

    def write(self, events: list[Event], wall_ns: int) -> None:
        """Append a line of events."""
        if self._fd is not None:
            self._append(self._fd, self._encode(events, wall_ns))

    def write_spans(self, spans: list[AgentSpan]) -> None:
        """Append a line of spans."""
        if self._fd is not None:
            self._append(self._fd, self._encode_spans(spans))

    def _append(self, fd: int, line: bytes) -> None:
        if self._path.suffix == ".gz":
            # A member of its own: the file is readable at any time, also after a kill.
            line = gzip.compress(line)
        whole = os.fstat(fd).st_size
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(fd, view) :]
        except OSError as error:
            _LOG.error("the recording %s ends here (%s): make room and start again", self._path, error)
            with contextlib.suppress(OSError):
                os.ftruncate(fd, whole)
            self.close()

    def close(self) -> None:
        """Finish the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
