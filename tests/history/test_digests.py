"""Digests are equal for equal messages only, and only under one key."""

from __future__ import annotations

from typing import Any

from turnscope.history.digests import DIGEST_BYTES, Key, unpacked
from turnscope.history.pieces import message

KEY = Key(b"secret")


def of(content: Any, role: str = "user", key: Key = KEY) -> bytes:
    return key.digest(message({"role": role, "content": content}))


def test_texts_that_run_together_alike_are_not_alike() -> None:
    one, two = [{"type": "text", "text": "acontentb"}], [{"type": "text", "text": t} for t in ("a", "b")]
    assert of(one) == of("acontentb")
    assert len({of(one), of(two), of("a"), of("b"), of(""), of(None, role="usercontenta")}) == 6


def test_the_same_key_makes_the_same_digests_and_another_makes_others() -> None:
    same, other = Key(b"secret"), Key(b"other")
    assert (same.id, of("a", key=same)) == (KEY.id, of("a"))
    assert other.id != KEY.id
    assert of("a", key=other) != of("a")
    assert "secret" not in KEY.id


def test_packed_digests_come_apart_again() -> None:
    made = [of("a"), of("b")]
    assert unpacked(b"".join(made)) == made
    assert {len(digest) for digest in made} == {DIGEST_BYTES}
    assert unpacked(b"") == []
