"""What is said of each kind is what its importer does."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.decode.imports.sample import FOLDER, Reader, Request, lines, published, read, sample, transfer_line
from turnscope.cli.inherit import inherited
from turnscope.decode.imports import claude_code, codex, dynamo, otlp, proxy_log, transfer_log, vllm_benchmark
from turnscope.decode.imports import published as published_
from turnscope.decode.imports.kinds import KINDS, looks_like
from turnscope.decode.imports.report import Report
from turnscope.model import AgentSpan, Turn

READERS: dict[str, Reader] = {
    otlp.NAME: lambda lines, report: inherited(otlp.read(lines, report), report),
    claude_code.NAME: claude_code.read,
    codex.NAME: codex.read,
    dynamo.NAME: dynamo.read,
}
ALWAYS = {
    *("span_key", "trace_id", "span_id", "turn_id", "revision", "session_source", "classified_by", "source"),
    *("service_name", "started_ns", "timing"),
}
"""What every importer fills or what tells of the import itself."""


def rows(kind: str) -> list[AgentSpan] | list[Turn]:
    """The rows of the kind's sample."""
    if kind in READERS:
        return read(READERS[kind], sample(f"{kind}.jsonl"))[0]
    report, run = Report(), published(on=True)
    text = [json.dumps([one.statistics() for one in run]).encode()]
    if kind == vllm_benchmark.NAME:
        return list(vllm_benchmark.read(text, report, "on"))
    prefills = list(proxy_log.read(lines([line for one in run for line in one.proxy_lines()]), report))
    intervals = list(transfer_log.read(lines([transfer_line(33, 70.5)]), report))
    return list(published_.join(vllm_benchmark.samples(text, report), prefills, intervals, "on", report))


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_gives_what_it_says_and_no_more(kind: str) -> None:
    found = rows(kind)
    bare = {field.name: field.default for field in msgspec.structs.fields(type(found[0]))}
    filled = {name for row in found for name in bare if getattr(row, name) != bare[name] and name not in ALWAYS}
    unchanging = {"suspicions", "attempts_made"}
    assert filled - unchanging == KINDS[kind].gives


@pytest.mark.parametrize("kind", READERS)
def test_nothing_of_prompts_answers_or_tools_is_in_the_rows(kind: str) -> None:
    assert "CANARY" in (FOLDER / f"{kind}.jsonl").read_text()
    found, report = read(READERS[kind], sample(f"{kind}.jsonl"))
    assert found
    assert report.broken == 0
    assert b"CANARY" not in msgspec.json.encode(found)


@pytest.mark.parametrize("kind", READERS)
def test_a_line_of_a_kind_is_recognised(kind: str) -> None:
    found = {looks_like(line.text) for line in sample(f"{kind}.jsonl")}
    assert found - {None} == {kind}
    assert looks_like(sample(f"{kind}.jsonl")[0].text) == kind


def test_logs_and_traces_are_recognised_and_nothing_else_is() -> None:
    one = Request("c", 1, tokens=1, ttft_ms=1, prefill_ms=1, at_s=0)
    assert (
        looks_like(one.proxy_lines()[1].encode()) == looks_like(transfer_line(1, 1).encode()) == "published-benchmark"
    )
    assert looks_like(json.dumps(one.statistics()).encode()) == "vllm-benchmark"
    assert looks_like(b'{"resourceSpans":[]}') == "otlp"
    for other in (b"", b"hello", b"\x00\xff", b"[1]", b'{"type":"user"}', b'{"event":5}', b"[" * 10**5, b"3"):
        assert looks_like(other) is None


@pytest.mark.parametrize("kind", READERS)
def test_no_cut_of_a_file_stops_its_reader(kind: str) -> None:
    text = (FOLDER / f"{kind}.jsonl").read_bytes()
    for end in range(0, len(text), 97):
        found, report = read(READERS[kind], lines(text[:end].split(b"\n")))
        assert report.records >= report.broken
        assert all(span.ended_ns is None or span.ended_ns >= span.started_ns for span in found)


def test_every_importer_has_a_sample() -> None:
    assert {path.stem for path in Path(FOLDER).glob("*.jsonl")} == set(READERS)
