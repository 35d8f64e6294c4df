"""Server-sent events, in whatever pieces they come."""

from __future__ import annotations

import itertools

from hypothesis import example, given, settings
from hypothesis import strategies as st

from turnscope.proxy.sse import EventSplitter, data_of

PIECE = st.sampled_from(["data: ", "data:", "\n", "\r", "\r\n", ": ping", "event: x", "é", "€", "{}", " ", "ab", "🙂"])


def read(chunks: list[bytes], limit: int = 1 << 20) -> tuple[list[bytes], int]:
    splitter = EventSplitter(limit)
    events = [event for chunk in chunks for event in splitter.feed(chunk)]
    return events + splitter.finish(), splitter.skipped


def cut(whole: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(whole) + 1) for place in places), len(whole)]
    return [whole[a:b] for a, b in itertools.pairwise(edges)]


@settings(deadline=None)
@given(st.lists(PIECE, max_size=40).map("".join), st.lists(st.integers(0, 400), max_size=12), st.integers(1, 30))
@example("data: a\r\n\r\ndata: b\r\n\r\n", [9, 10, 11], 30)
@example("a\n\n\nb\n\n\n\n", [2, 3, 4], 30)
@example("aaaa\n\nb\n\n", [3, 5], 3)
@example("aaa\n\nb\n\n", [4], 3)
@example("\r\n\raaa\n", [1, 2], 2)
def test_events_do_not_depend_on_where_the_chunks_are_cut(text: str, places: list[int], limit: int) -> None:
    whole = text.encode()
    assert read(cut(whole, places), limit) == read([whole], limit)


@settings(deadline=None)
@given(st.lists(st.text("aé€🙂:{ ", min_size=1, max_size=9), max_size=9))
def test_every_written_event_is_read_whatever_ends_its_lines(payloads: list[str]) -> None:
    for end in ("\n", "\r\n", "\r"):
        whole = "".join(f"data: {payload}{end}{end}" for payload in payloads).encode()
        events, skipped = read([whole[i : i + 1] for i in range(len(whole))])
        assert [data_of(event).decode() for event in events] == payloads
        assert skipped == 0


def test_data_is_read_with_and_without_a_space_and_over_several_lines() -> None:
    assert data_of(b'data:{"a":1}') == b'{"a":1}'
    assert data_of(b'event: x\nid: 7\ndata: {"a":\ndata: 1}') == b'{"a":\n1}'
    assert data_of(b": keep-alive") == b""


def test_an_event_past_the_limit_is_skipped_counted_and_not_kept() -> None:
    splitter = EventSplitter(limit=1000)
    for _ in range(5_000):
        assert splitter.feed(b"x" * 100) == []
        assert len(splitter._buffer) <= 1_100
    assert splitter.feed(b"\n\ndata: after\n\n") == [b"data: after"]
    assert splitter.skipped == 1


def test_a_last_event_without_its_blank_line_is_given_at_the_end() -> None:
    assert read([b"data: a\n\nda", b"ta: b"]) == ([b"data: a", b"data: b"], 0)
