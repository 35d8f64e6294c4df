"""OTLP JSON lines of traces, as collectors' file exporters write them: one export request a line.

Read by the same table as spans that are received, so what is read of one is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from turnscope import semconv
from turnscope.decode import evaluations, otlp_json
from turnscope.decode.imports.report import Line, Report
from turnscope.model import AgentSpan

NAME: Final = "otlp"


def read(lines: Iterable[Line], report: Report) -> Iterator[AgentSpan]:
    """The spans in a file, each as it tells of itself: whose session one inherits is for who sees them together.

    A broken line, and a broken span in a whole one, is counted in ``report`` and costs nothing but itself.
    """
    for line in lines:
        report.records += 1
        try:
            content = otlp_json.parse(line.text)
            if "resourceSpans" not in content:
                report.other += 1
                yield from _evaluations(line, content)
                continue
            found = otlp_json.spans(content)
        except (otlp_json.NotOtlp, RecursionError):
            report.refuse(line.number, "not JSON of OTLP traces")
            continue
        for _, why in found.rejected:
            report.refuse(line.number, f"a span of it: {why}")
        yield from found.spans


_RESULT: Final = semconv.EVALUATION_RESULT.encode()


def _evaluations(line: Line, content: otlp_json.Json) -> list[AgentSpan]:
    """Of a line of logs, which mostly are somebody else's. Raises ``NotOtlp``."""
    if "resourceLogs" not in content or _RESULT not in line.text:
        return []
    return evaluations.read(otlp_json.logs(content))
