"""Text that was cut between the halves of a character, as JavaScript writes it into JSON."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnscope.surrogates import mended, reading

read = reading(msgspec.json.decode)
HALVES = st.text(st.sampled_from('\ud83d\ude00\U0001f600\\"u/\nd8e\x00'))


@given(HALVES)
def test_every_half_becomes_the_replacement_character_and_nothing_else_changes(text: str) -> None:
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert read(json.dumps(text).encode()) == whole


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_without_halves_is_not_touched(text: str) -> None:
    encoded = json.dumps([text, {text: text}]).encode()
    assert mended(encoded) is encoded


@given(st.binary(max_size=40).map(lambda raw: b'"\\' + raw) | st.from_regex(rb'"(\\u[dD][89acAC]|\\|[0-9a-z"])*'))
def test_what_is_no_json_stays_none_and_is_as_long(raw: bytes) -> None:
    assert len(mended(raw)) == len(raw)


@pytest.mark.parametrize("broken", [b"", b"{", b'"\\ud8zz"', b'"\\ud83d', b'"\\', b'{"a": \\ud83d}', b'"\\ud83d" more'])
def test_what_is_broken_otherwise_is_an_error_still(broken: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read(broken)


def test_a_record_of_another_shape_is_told_from_broken_json() -> None:
    typed: Any = reading(partial(msgspec.json.decode, type=dict[str, int]))
    for text in (b'{"a": "x"}', b'{"a": "\\ud83d"}'):
        with pytest.raises(msgspec.ValidationError):
            typed(text)
    assert typed('{"\\ud83d": 1}') == {"\ufffd": 1}
