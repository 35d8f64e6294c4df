"""``serve --record FILE``: what was received, as OTLP JSON lines, gzipped when the name ends in ``.gz``."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, cast

from turnscope.model import Event

_LOG: Final = logging.getLogger(__name__)


class Recorder:
    """Appends lines to ``path``; ``encode`` makes one of events and their arrival time. Raises ``OSError`` at once
    when the file cannot be written; later failures end the recording with one sentence in the log."""

    def __init__(self, path: Path, encode: Callable[[list[Event], int], bytes]) -> None:
        self._path = path
        self._encode = encode
        plain = path.open("ab")
        self._file: BinaryIO | None = cast(BinaryIO, gzip.GzipFile(fileobj=plain)) if path.suffix == ".gz" else plain

    def write(self, events: list[Event], wall_ns: int) -> None:
        """Append one line."""
        if self._file is None:
            return
        try:
            self._file.write(self._encode(events, wall_ns))
            self._file.flush()
        except OSError as error:
            _LOG.error("the recording %s ends here (%s): make room and start again", self._path, error)
            self._file = None

    def close(self) -> None:
        """Finish the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
