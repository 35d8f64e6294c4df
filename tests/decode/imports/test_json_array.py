"""An array of flat objects is read piece by piece."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from turnscope.decode.imports import json_array
from turnscope.decode.imports.json_array import elements
from turnscope.decode.imports.report import Report

FLAT = st.dictionaries(st.text(max_size=8), st.one_of(st.integers(), st.text(alphabet='{}[]"\\,a ', max_size=12)))


def parts(chunks: list[bytes]) -> tuple[list[Any], Report]:
    report = Report()
    return [json.loads(line.text) for line in elements(chunks, report)], report


@given(st.lists(FLAT, max_size=6), st.integers(1, 40), st.sampled_from([None, 2]))
def test_wherever_it_is_cut_the_elements_are_those_that_were_written(
    objects: list[dict[str, Any]], size: int, indent: int | None
) -> None:
    text = json.dumps(objects, indent=indent).encode()
    found, report = parts([text[i : i + size] for i in range(0, len(text), size)])
    assert found == objects
    assert report.broken == 0


def test_an_array_that_ends_within_an_element_keeps_those_before_and_counts_one_broken() -> None:
    found, report = parts([b'[{"a": 1}, {"b": 2}, {"c"'])
    assert found == [{"a": 1}, {"b": 2}]
    assert [(one.number, one.why) for one in report.named] == [(3, "cut off")]


def test_an_array_that_never_closes_is_cut_off_and_an_empty_one_is_not() -> None:
    assert parts([b'[{"a": 1},\n'])[1].broken == 1
    assert parts([b"[\n]\n"])[1].broken == 0


def test_an_element_that_does_not_end_is_not_held_for_ever(monkeypatch: Any) -> None:
    monkeypatch.setattr(json_array, "MAX_ELEMENT", 1000)
    taken = 0

    def endless() -> Any:
        nonlocal taken
        yield b'[{"a": 1}, {"b": "'
        while True:
            taken += 1
            yield b"x" * 100

    report = Report()
    assert len(list(elements(endless(), report))) == 1
    assert (taken, report.broken) == (10, 1)
