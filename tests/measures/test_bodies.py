"""Requests are found in what people have saved."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnscope.measures.bodies import NoBody, read

BODY = {"messages": [{"role": "user", "content": "hi"}]}
OTHER = {"messages": [{"role": "user", "content": "bye"}]}


def said(text: str, line: int | None = None) -> str:
    return read(text, line).pieces[0].texts[0].text


@pytest.mark.parametrize(
    "value",
    [
        BODY,
        {"body": BODY},
        {"request": BODY, "status": 200},
        {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": BODY},
        {"request": {"headers": {}, "body": BODY}},
        {"request": {"body": json.dumps(BODY)}},
        {"timestamp": 1, "event": {"payload": BODY}},
    ],
)
def test_a_body_is_found_alone_and_in_what_logs_put_around_it(value: Any) -> None:
    assert said(json.dumps(value)) == "hi"
    assert said(json.dumps(value, indent=2)) == "hi"


def test_of_json_lines_the_last_is_taken_or_the_one_that_is_asked_for() -> None:
    text = f"{json.dumps({'body': BODY})}\n\n{json.dumps(OTHER)}\n"
    assert said(text) == "bye"
    assert said(text, 1) == "hi"
    assert said(text, 3) == "bye"


def test_an_answer_that_was_saved_beside_the_request_is_found() -> None:
    message = {"role": "assistant", "content": "hello"}
    for response in ({"choices": [{"message": message}]}, {"body": {"choices": [{"message": message}]}}):
        pair = {"request": {"body": BODY}, "response": response}
        for value in (pair, {"event": pair, "level": "info"}):
            answer = read(json.dumps(value)).answer
            assert answer is not None
            assert answer.texts[0].text == "hello"
    two = {"choices": [{"message": message}, {"message": message}]}
    assert read(json.dumps({"body": BODY, "response": two})).answer is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "is empty"),
        ("   \n ", None, "is empty"),
        ("{", None, "is no JSON"),
        ('{"messages": [', None, "is no JSON"),
        ("\x00\xff", None, "is no JSON"),
        ("[1, 2]", None, "holds a list"),
        ('"text"', None, "holds a text"),
        ("3", None, "holds a number or null"),
        ("{}", None, "holds an object"),
        ('{"id": 1, "choices": []}', None, "holds an object with 'id', 'choices'"),
        ('{"messages": []}', None, "no request"),
        ('{"a": 1}\n{"b": 2}', None, "an object with 'b'"),
        ('{"a": 1}\n{"b": ', None, "line 2 is no JSON"),
        (json.dumps(BODY), 2, "has no line 2, only 1"),
        (f"{json.dumps(BODY)}\nxx", 2, "line 2 is no JSON"),
        ("[" * 100_000, None, "deep"),
    ],
)
def test_what_holds_no_request_is_told_in_a_few_words(text: str, line: int | None, words: str) -> None:
    with pytest.raises(NoBody) as caught:
        read(text, line)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
