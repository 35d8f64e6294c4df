"""The published benchmark's three artefacts together: the client's statistics, the proxy's log and P's log of one run.

They share no request id. Requests of one conversation follow each other, so its n-th prefill in the proxy's log is
that of its n-th turn. A log that tells of more (failed requests) fits only where one alignment alone lets every
prefill end before its first token. P's log counts reads in intervals: if their number is a whole multiple of the
prefills with a handle, they are shared out in order, each with the average of its interval; else nothing says whose
they were.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from turnscope.decode.imports import vllm_benchmark
from turnscope.decode.imports.proxy_log import Prefill
from turnscope.decode.imports.report import BadRecord, Report
from turnscope.decode.imports.transfer_log import Interval
from turnscope.decode.imports.values import ms_to_ns
from turnscope.decode.imports.vllm_benchmark import Sample
from turnscope.model import SECOND_NS, Turn, plural
from turnscope.semconv import Path, Reason

NAME: Final = "published-benchmark"
_ROUNDED_NS: Final = 1_000_000
"""The proxy's log rounds to milliseconds."""


class Fetch(NamedTuple):
    """What one prefill read back."""

    ns: int
    bytes: int
    reads: int


def join(
    samples: Iterable[Sample], prefills: Sequence[Prefill], intervals: Sequence[Interval], run: str, report: Report
) -> Iterator[Turn]:
    """The turns of the run that is called ``run``, oldest first, with what the logs tell of them.

    What cannot be joined stays unknown, and ``report`` notes it. All three are held in memory.
    """
    asked = sorted(samples, key=lambda sample: sample.start_time_ms)
    fetches = share(prefills, intervals, report)
    pairs = pair(asked, prefills, report)
    shift_ns = _shift(asked, prefills, pairs)
    if shift_ns is None and asked:
        report.notes.append("nothing in the logs dates the run: its turns stand in 1970, by the client's own clock")
    for position, sample in enumerate(asked):
        try:
            turn = vllm_benchmark.turn(sample, run, shift_ns=shift_ns or 0)
        except BadRecord as error:
            report.refuse(position + 1, str(error))
            continue
        turn.source = NAME
        turn.revision = 2  # more than the same turn from the statistics alone
        found = pairs.get(position)
        if found is not None:
            _add(turn, prefills[found], fetches.get(found))
        yield turn


def share(prefills: Sequence[Prefill], intervals: Sequence[Interval], report: Report) -> dict[int, Fetch]:
    """The reads of each prefill with a handle, by its place in ``prefills``; none if they do not come out even."""
    reads = sum(interval.transfers for interval in intervals)
    given = [place for place, prefill in enumerate(prefills) if prefill.handle]
    if not reads or not given or reads % len(given):
        if reads or given:
            report.notes.append(
                f"P's log counts {plural(reads, 'read')} for {plural(len(given), 'prefill')} with a handle: "
                "they cannot be shared out, so transfer times stay unknown"
            )
        return {}
    each = reads // len(given)
    one_by_one = (interval for interval in intervals for _ in range(interval.transfers))
    found = {}
    for place in given:
        mine = [next(one_by_one) for _ in range(each)]
        # Ranks read side by side: a prefill waits for one of them, and all of their bytes are moved.
        average_ns = round(sum(interval.average_ns for interval in mine) / each)
        found[place] = Fetch(average_ns, sum(interval.average_bytes for interval in mine), each)
    return found


def pair(samples: Sequence[Sample], prefills: Sequence[Prefill], report: Report) -> dict[int, int]:
    """The prefill of each sample, by their places; samples must be in the order in which they were sent."""
    asked, logged = defaultdict(list), defaultdict(list)
    for position, sample in enumerate(samples):
        asked[str(sample.conversation_id)].append(position)
    for place, prefill in enumerate(prefills):
        logged[prefill.conversation].append(place)
    pairs: dict[int, int] = {}
    unclear = 0
    for conversation, positions in asked.items():
        places = logged[conversation]
        first, last = (vllm_benchmark.turn_index(samples[positions[end]]) for end in (0, -1))
        # A log as long as the conversation is that conversation, the turns of a warm-up included.
        whole = len(places) == last and len(positions) == last - first + 1
        starts = [first - 1] if whole else range(len(places) - len(positions) + 1)
        fits = [
            start
            for start in starts
            if all(
                prefills[place].took_ns <= (ms_to_ns(samples[position].ttft_ms) or 0) + _ROUNDED_NS
                for position, place in zip(positions, places[start:], strict=False)
            )
        ]
        if len(fits) == 1:
            pairs.update(zip(positions, places[fits[0] :], strict=False))
        else:
            unclear += 1
    if unclear:
        report.notes.append(
            f"{unclear:,} of {plural(len(asked), 'conversation')} could not be found in the proxy's log in a way that "
            "fits: their prefill times stay unknown"
        )
    return pairs


def _shift(samples: Sequence[Sample], prefills: Sequence[Prefill], pairs: dict[int, int]) -> int | None:
    """The client's zero as Unix time, from when prefills ended; late by less than a second and a request's way to P."""
    shifts = [
        logged_ns + SECOND_NS - prefills[place].took_ns - started_ns
        for position, place in pairs.items()
        if (logged_ns := prefills[place].logged_ns) is not None
        and (started_ns := ms_to_ns(samples[position].start_time_ms)) is not None
    ]
    return min(shifts, default=None)


def _add(turn: Turn, prefill: Prefill, fetch: Fetch | None) -> None:
    turn.join = "inferred"
    turn.prefill_ns = prefill.took_ns
    if not prefill.handle:
        turn.fetch_reads = 0  # without a handle P reads nothing
        turn.reason = Reason.FIRST_TURN if turn.turn_index == 1 else turn.reason
    if fetch is not None:
        turn.path = Path.REVERSE_FETCH
        turn.fetch_ns, turn.fetched_bytes, turn.fetch_reads = fetch
