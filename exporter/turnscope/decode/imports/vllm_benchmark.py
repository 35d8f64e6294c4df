"""The statistics of vLLM's multi-turn benchmark (``--stats-json-output``): an array of the requests that succeeded.

Times are the client's, by a monotonic clock: they tell distances and no date, so turns stand in 1970 unless something
else dates them. Token counts are the client's own, without what the chat template adds. ``approx_cached_percent`` is
the client's guess and is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from turnscope.decode.imports.json_array import elements
from turnscope.decode.imports.report import BadRecord, Report
from turnscope.decode.imports.values import count, decoder, in_time, ms_to_ns, trace_id
from turnscope.model import Turn
from turnscope.semconv import bounded

NAME: Final = "vllm-benchmark"


class Sample(msgspec.Struct):
    """One request, as the client saw it."""

    start_time_ms: float
    ttft_ms: float
    latency_ms: float
    conversation_id: str | int
    input_num_turns: int
    """Messages in the request, the question included."""
    input_num_tokens: int | None = None
    output_num_tokens: int | None = None


_sample = decoder(Sample)


def samples(chunks: Iterable[bytes], report: Report) -> Iterator[Sample]:
    """The requests in a file. A broken element is counted in ``report`` and costs nothing but itself."""
    for element in elements(chunks, report):
        report.records += 1
        try:
            yield _sample(element.text)
        except BadRecord as error:
            report.refuse(element.number, str(error))


def read(chunks: Iterable[bytes], report: Report, run: str) -> Iterator[Turn]:
    """The turns of the run that is called ``run``."""
    for element in elements(chunks, report):
        report.records += 1
        try:
            yield turn(_sample(element.text), run)
        except BadRecord as error:
            report.refuse(element.number, str(error))


def turn_index(sample: Sample) -> int:
    """From 1: the messages of a request are questions and answers in turn, and the last one is a question."""
    return (sample.input_num_turns + 1) // 2


def turn(sample: Sample, run: str, *, shift_ns: int = 0) -> Turn:
    """The turn that ``sample`` tells of; ``shift_ns`` is its clock's zero as Unix time. Raises BadRecord."""
    started_ns, took_ns = ms_to_ns(sample.start_time_ms), ms_to_ns(sample.latency_ms)
    if started_ns is None or took_ns is None or sample.input_num_turns < 1:
        raise BadRecord("a time or a number of messages that cannot be")
    began_ns = in_time(started_ns + shift_ns)
    first_ns = ms_to_ns(sample.ttft_ms)
    conversation = str(sample.conversation_id)
    return Turn(
        # One key whichever importer brings it, so that logs can be added to statistics later.
        turn_id=trace_id("benchmark", run, conversation, sample.input_num_turns),
        source=NAME,
        run=run,
        session_id=bounded(f"{run}:{conversation}"),
        session_source="conversation_id",
        turn_index=turn_index(sample),
        started_ns=began_ns,
        ended_ns=in_time(began_ns + took_ns),
        duration_ns=took_ns,
        ttft_ns=first_ns,
        prompt_tokens=count(sample.input_num_tokens),
        output_tokens=count(sample.output_num_tokens),
    )
