"""The page about traces: its queries are TraceQL, and ask for what a turn's trace has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from docs.pages import traces
from tests.node import setup

PAGE = Path(__file__).parents[2] / "docs" / "traces.md"
QUERIES = re.findall(r"```traceql\n(.+?)\n```", PAGE.read_text(), re.DOTALL)
SPANS = {"turn", "prefill", "reverse_fetch", "handoff", "decode", "attempt"}


@pytest.mark.timeout(300)
def test_every_query_is_traceql() -> None:
    assert len(QUERIES) >= 8
    done = setup.run("traceql.mjs", stdin=json.dumps(QUERIES))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.timeout(300)
def test_a_query_that_is_not_is_noticed() -> None:
    done = setup.run("traceql.mjs", stdin=json.dumps([*QUERIES, '{ name = "turn" && }']))
    assert done.returncode == 1
    assert done.stdout.startswith("at ")


def test_queries_ask_for_spans_and_attributes_that_there_are() -> None:
    keys = traces.every_key()
    for query in QUERIES:
        assert set(re.findall(r"span\.([a-z_.]+)", query)) <= keys, query
        names = re.findall(r'name =~? "([a-z_|]+)"', query)
        assert {part for name in names for part in name.split("|")} <= SPANS, query


def test_every_span_and_attribute_has_a_line_that_explains_it() -> None:
    text = PAGE.read_text()
    assert set(re.findall(r"## Attributes of `(\w+)`", text)) == SPANS
    assert re.findall(r"^\| `([^`]+)` \| \w+ \|  \|$", text, re.MULTILINE) == []
