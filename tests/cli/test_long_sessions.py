"""An agent that runs for days, and batches that are counted in spans and refused by bytes, through a real sidecar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.cli.served import Served, served
from tests.decode.spans import otlp_span, request
from turnscope.measures.findings import findings
from turnscope.semconv import Part
from turnscope.store import StoreReader

TURNS, STEP_S = 4_000, 64.8
DAYS_S = 3 * 86_400
BATCH = 512
"""Spans that SDKs send at once unless told otherwise."""
AGENT, CHAT, TOOL = ({"gen_ai.operation.name": name} for name in ("invoke_agent", "chat", "execute_tool"))


def post(sidecar: Served, spans: list[Span]) -> int:
    return httpx.post(
        f"http://127.0.0.1:{sidecar.otlp_http}/v1/traces",
        content=request(*spans).SerializeToString(),
        headers={"Content-Type": "application/x-protobuf"},
        trust_env=False,
        timeout=60,
    ).status_code


def days() -> Iterator[Span]:
    """Three days of an agent in one trace, its outermost span last: six spans a turn, as the model reads for a second,
    writes for two, one tool runs for four, and the rest of the time is the agent's own."""
    for n in range(TURNS):
        at, step, first = n * STEP_S, 10 + 6 * n, {"gen_ai.response.time_to_first_chunk": 1.0}
        yield otlp_span(step, AGENT, name="step", parent=1, start_s=at, end_s=at + STEP_S)
        yield otlp_span(step + 1, CHAT | first, parent=step, start_s=at, end_s=at + 3)
        yield otlp_span(step + 2, name="POST", parent=step + 1, start_s=at, end_s=at + 3)
        yield otlp_span(step + 3, TOOL, parent=step, start_s=at + 3, end_s=at + 7)
        yield otlp_span(step + 4, name="SELECT", parent=step + 3, start_s=at + 4, end_s=at + 5)
        yield otlp_span(step + 5, name="parse", parent=step, start_s=at + 8, end_s=at + 9)
    yield otlp_span(1, AGENT | {"session.id": "days"}, name="run", start_s=0, end_s=DAYS_S)


def test_three_days_of_an_agent_in_one_trace_are_one_session_with_every_turn(tmp_path: Path) -> None:
    told = list(days())
    with served(tmp_path) as sidecar:
        for at in range(0, len(told), BATCH):
            assert post(sidecar, told[at : at + BATCH]) == 200
        assert sidecar.counts()["turnscope_spans_forgotten"] == 0
    reader = StoreReader(str(sidecar.data / "store"))
    (found,), _ = reader.summaries()
    assert (found.session_id, found.spans, found.model_calls, found.tools) == ("days", 6 * TURNS + 1, TURNS, TURNS)
    seconds = {part: getattr(found, f"{part}_ns") / 1e9 for part in Part}
    assert seconds == pytest.approx(
        {
            Part.INPUT_PROCESSING: TURNS,
            Part.GENERATION: 2 * TURNS,
            Part.TOOL_WAIT: 4 * TURNS,
            Part.APPLICATION_WORK: DAYS_S - 7 * TURNS,
            Part.USER_WAIT: 0,
            Part.UNKNOWN: 0,
        }
    )
    assert found.wall_ns == DAYS_S * 10**9
    reader.close()


def test_a_batch_that_is_too_long_is_refused_for_good_and_doctor_says_what_to_set(tmp_path: Path) -> None:
    content = {"gen_ai.input.messages": "x" * 10 * 1024, "session.id": "s"}
    batch = [otlp_span(n, content | CHAT) for n in range(1, BATCH + 1)]
    with served(tmp_path) as sidecar:
        assert post(sidecar, batch) == 413
        (finding,) = (one for one in findings(sidecar.status()) if one.check == "requests_too_large")
        assert "1 request was longer than --max-message-bytes (4 MiB)" in finding.what
        assert "OTEL_BSP_MAX_EXPORT_BATCH_SIZE" in finding.fix
        for at in range(0, BATCH, 64):
            assert post(sidecar, batch[at : at + 64]) == 200
        assert sidecar.status().exporter.spans == BATCH
