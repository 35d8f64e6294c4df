"""Server-sent events read on the side, in whatever pieces they come."""

from __future__ import annotations

from typing import Final

EVENT_LIMIT: Final = 4 << 20
"""Bytes of one event; a longer one is skipped and counted, so that an endless line cannot fill the memory."""

_BLANK: Final = b"\n\n"
_LF: Final = 10


class EventSplitter:
    """Cuts a stream of bytes into events.

    The result depends on the bytes alone, never on where the chunks were cut: inside a character, a line end or a
    field. LF, CRLF and CR end a line; empty events are left out.
    """

    __slots__ = ("_after_cr", "_buffer", "_limit", "_searched", "_skipping", "skipped")

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._after_cr = False
        self._skipping = False
        self.skipped = 0
        """Events given up because they were longer than ``limit``."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that ``chunk`` completes: their lines joined by LF, without the blank line."""
        if self._after_cr or b"\r" in chunk:
            chunk = self._plain_line_ends(chunk)
        buffer = self._buffer
        if not buffer and not self._skipping:
            if chunk.endswith(_BLANK):
                end = len(chunk) - 2
                if 0 < end <= self._limit and chunk.find(_BLANK) == end and chunk[0] != _LF:
                    return [chunk[:-2]]  # the usual chunk: one whole event
                return self._events(chunk)
            chunk = chunk.lstrip(b"\n")
        buffer += chunk
        end = buffer.rfind(_BLANK, self._searched)
        events: list[bytes] = []
        if end >= 0:
            whole = bytes(buffer[:end])
            del buffer[: end + 2]
            if self._skipping:
                whole = whole.partition(_BLANK)[2]
                self._skipping = False
            events = self._events(whole)
        self._searched = max(0, len(buffer) - 1)
        if self._skipping or len(buffer) - buffer.endswith(b"\n") > self._limit:
            self._give_up()
        return events

    def finish(self) -> list[bytes]:
        """What was left without its blank line at the end of the stream. A strict reader drops it; the last event of
        a stream that was cut short can still hold a whole field."""
        rest = b"" if self._skipping else bytes(self._buffer)
        self._buffer.clear()
        return self._events(rest)

    def _plain_line_ends(self, chunk: bytes) -> bytes:
        if self._after_cr:
            rest = chunk.removeprefix(b"\n")
            self._after_cr = not chunk
        else:
            rest = chunk
        self._after_cr = self._after_cr or rest.endswith(b"\r")
        return rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _give_up(self) -> None:
        """Forget the event that is being read, all but a line end that may begin its blank line."""
        if not self._skipping:
            self._skipping = True
            self.skipped += 1
        tail = bytes(self._buffer[-1:])
        self._buffer[:] = tail if tail == b"\n" else b""
        self._searched = 0

    def _events(self, whole: bytes) -> list[bytes]:
        events = [event for part in whole.split(_BLANK) if (event := part.strip(b"\n"))]
        if len(whole) > self._limit:
            kept = [event for event in events if len(event) <= self._limit]
            self.skipped += len(events) - len(kept)
            return kept
        return events


def data_of(event: bytes) -> bytes:
    """The event's ``data``: its data lines joined by LF, b"" when it has none (a comment, a keep-alive)."""
    if event.startswith(b"data: ") and b"\n" not in event:
        return event[6:]
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
    return lines[0] if len(lines) == 1 else b"\n".join(lines)
