"""A body read in short steps gives what decoding it whole gives, whatever its encoding."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnscope.history import reading
from turnscope.history.pieces import Piece, Text, pieces
from turnscope.history.reading import Reading

SIGNS = st.one_of(
    st.sampled_from(["\\", '"', "/", " ", "\n", "a", "é", "中", "😀", "\ufeff", "\u2028", "u", "d8", "\\ud83d"]),
    st.characters(exclude_categories=["Cs"]),
)
TEXTS = st.lists(SIGNS, max_size=60).map("".join)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so low that every text of some length meets them all."""
    monkeypatch.setattr(reading, "LONG", 8)
    monkeypatch.setattr(reading, "WINDOW", 32)
    monkeypatch.setattr(reading, "_ESCAPED", 32)
    monkeypatch.setattr(reading, "_IDS", 24)
    monkeypatch.setattr(reading, "_SHORT", 0)


class Encoding:
    """Some encoding of JSON: blanks, escapes and the order of keys as they are drawn."""

    def __init__(self, seed: Random) -> None:
        self._seed = seed

    def of(self, value: Any) -> str:
        blank = self._seed.choice(["", "", " ", "\n\t"])
        return blank + self._value(value) + blank

    def _value(self, value: Any) -> str:
        if isinstance(value, dict):
            entries = list(value.items())
            self._seed.shuffle(entries)
            return "{" + ",".join(f"{self.of(k)}:{self.of(v)}" for k, v in entries) + "}"
        if isinstance(value, list):
            return "[" + ",".join(self.of(item) for item in value) + "]"
        if isinstance(value, str):
            return '"' + "".join(self._sign(sign) for sign in value) + '"'
        return json.dumps(value)

    def _sign(self, sign: str) -> str:
        escaped = "".join(f"\\u{unit:04x}" for unit in _utf16(sign))
        shorter = {"/": "\\/", '"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}.get(sign, escaped)
        plain = sign if ord(sign) >= 32 and sign not in '"\\' else shorter
        return str(self._seed.choice([plain, plain, plain, shorter, escaped, escaped]))


def _utf16(sign: str) -> list[int]:
    raw = sign.encode("utf-16-be")
    return [int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2)]


PARTS = st.one_of(
    TEXTS,
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}),
    st.fixed_dictionaries({"type": st.just("image_url"), "image_url": st.fixed_dictionaries({"url": TEXTS})}),
    st.fixed_dictionaries({"type": st.just("tool_use"), "name": TEXTS, "input": st.dictionaries(TEXTS, TEXTS)}),
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXTS | st.lists(PARTS, max_size=3)},
    optional={"reasoning_content": TEXTS, "name": TEXTS, "a key of some length": TEXTS},
)
TOOLS = st.lists(st.fixed_dictionaries({"name": TEXTS, "description": TEXTS}), max_size=2)
BODIES = st.fixed_dictionaries(
    {"model": TEXTS, "messages": st.lists(MESSAGES, max_size=4)},
    optional={
        "tools": TOOLS,
        "system": TEXTS,
        "prompt": TEXTS | st.lists(TEXTS, max_size=2) | st.lists(st.integers(0, 200_000), max_size=30),
        "input": TEXTS,
        "chat_template_kwargs": st.dictionaries(TEXTS, TEXTS),
        "temperature": st.floats(0, 2),
    },
)


def whole(found: Reading) -> list[Piece]:
    """The pieces with their texts put together."""
    return [
        msgspec.structs.replace(
            piece,
            role="".join(found.windows(piece.role)),
            texts=tuple(Text("".join(found.windows(t.label)), "".join(found.windows(t.text))) for t in piece.texts),
        )
        for piece in pieces(found.fields())
    ]


@given(st.data())
def test_any_encoding_of_a_body_gives_the_pieces_of_the_decoded_body(data: st.DataObject) -> None:
    body = data.draw(BODIES)
    encoded = Encoding(data.draw(st.randoms(use_true_random=False))).of(body).encode()
    # Templates print the order of keys, so it is the encoding's that counts.
    assert whole(Reading(encoded)) == list(pieces(json.loads(encoded)))


@given(st.data())
def test_a_body_that_breaks_off_has_no_fields(data: st.DataObject) -> None:
    encoded = json.dumps(data.draw(BODIES)).encode()
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(msgspec.DecodeError):
        Reading(encoded[:cut]).fields()


@pytest.mark.parametrize("more", ["}", "{}", ",", "x"])
def test_more_than_one_value_is_no_body(more: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        Reading((json.dumps({"model": "m"}) + more).encode()).fields()


@pytest.mark.parametrize("text", ["word " * 20, "\\" * 99, "中" * 50, '\n"' * 50, "😀" * 20, "\\ud83d" * 20])
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("before", range(12))
def test_no_more_of_a_text_than_a_window_is_decoded_at_once(text: str, ascii_only: bool, before: int) -> None:
    text = "x" * before + text
    body = json.dumps({"messages": [{"role": "user", "content": text}]}, ensure_ascii=ascii_only).encode()
    pauses: list[None] = []
    found = Reading(body, lambda: pauses.append(None))
    ((content,),) = (piece.texts for piece in pieces(found.fields()))
    windows = [*found.windows(content.text)]
    assert "".join(windows) == text
    assert max(len(window) for window in windows) <= reading.WINDOW
    assert len(pauses) >= 2 * len(body) // reading.WINDOW - 4, "once to find its end, once to decode it"


def test_between_two_texts_there_is_a_pause_however_short_they_are() -> None:
    pauses: list[None] = []
    body = json.dumps({"tools": [{"parameters": {str(n): "x" for n in range(500)}}]}).encode()
    Reading(body, lambda: pauses.append(None)).fields()
    assert len(pauses) >= 2 * 500


@pytest.mark.parametrize("blanks", ["", " " * 99])
def test_token_ids_with_any_blanks_between_them_are_a_line_each(blanks: str) -> None:
    body = {"prompt": [1, 2, 3]}
    assert whole(Reading(json.dumps(body).replace(",", f",{blanks}").encode())) == [*pieces(body)]


def test_token_ids_are_decoded_a_few_at_a_time() -> None:
    body = {"prompt": [*range(99_000, 99_100)]}
    found = Reading(json.dumps(body).encode())
    (piece,) = pieces(found.fields())
    windows = [*found.windows(piece.texts[0].text)]
    assert max(window.count("\n") for window in windows) <= 4
    assert whole(Reading(json.dumps(body).encode())) == [*pieces(body)]


def test_a_text_that_is_none_is_found_out_when_it_is_decoded() -> None:
    found = Reading(b'{"messages": [{"role": "user", "content": "no such escape: \\x and so on, and on"}]}')
    ((content,),) = (piece.texts for piece in pieces(found.fields()))
    with pytest.raises(msgspec.DecodeError):
        "".join(found.windows(content.text))
