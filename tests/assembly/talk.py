"""A conversation in tokens: what P reuses follows from the handle by position, as the engine does it."""

from __future__ import annotations

import random
from typing import Any

from tests.assembly.run import Run
from tests.builders import KEYS, STOP, Pair
from turnscope.marks import Keys
from turnscope.model import Event, Handle, Turn

THRESHOLD = 64
VOCABULARY = 150_000


def text(size: int, salt: int = 0) -> list[int]:
    """Token ids as a language has them: few are frequent, most are rare."""
    rng = random.Random(salt)
    return [int(rng.paretovariate(0.7) * 20) % VOCABULARY for _ in range(size)]


def message(size: int, salt: int = 0) -> list[int]:
    """A text that ends as messages do."""
    return [*text(size - 1, salt), STOP]


class Talk:
    """One session on one pair; keeps every answer, so that the next prompt can be made of it."""

    def __init__(self, pair: Pair, session: str | None = "s") -> None:
        self.pair = pair
        self.session = session
        self.answers: dict[str, list[int]] = {}

    def turn(
        self,
        n: str,
        prompt: list[int],
        answer: int = 200,
        *,
        at_ms: int = 0,
        given: Handle | None = None,
        local: int = 0,
        first: bool = False,
        keys: Keys = KEYS,
        **fields: Any,
    ) -> tuple[list[Event], list[Event]]:
        """The turn's events, and its digests, sent half a second after. ``local``: of ``prompt``, hit on P.

        With ``given``, P fetches what the handle offers beyond that, whatever the tokens are.
        """
        size, offered = len(prompt), given.tokens if given is not None and given.tokens is not None else 0
        remainder = min(offered, size) - local
        self.answers[n] = message(answer, salt=100 + sum(n.encode()))
        roles = ["system", "user"] if first else ["system", "user", "assistant", "user"]
        events = self.pair.turn(
            n,
            at_ms=at_ms,
            prompt=size,
            local=local,
            fetched=remainder if remainder >= THRESHOLD else 0,
            output=answer,
            given=given,
            session=self.session,
            **{"attempt": {"message_roles": roles, "message_chars": [1] * len(roles)}, **fields},
        )
        anchor = given.tokens if given is not None else None
        return events, self.pair.digests(n, prompt, self.answers[n], at_ms + 1400, anchor=anchor, keys=keys)


# --- one talk that many tests begin with ---------------------------------------------------------------
SYSTEM = message(1000, salt=1)
USER = message(50, salt=2)


def two_turns(
    second: list[int],
    *,
    first: list[int] = SYSTEM,
    answer: int = 600,
    handle: bool = True,
    local: int = 0,
    digests: bool = True,
    pair: Pair | None = None,
    keys: Keys = KEYS,
    **fields: Any,
) -> Run:
    """A first turn of 1,000 tokens answered with 600, and then ``second``, given the first's handle of 1,599."""
    pair = pair or Pair()
    talk = Talk(pair)
    events, more = talk.turn("1", first, answer, first=True)
    given = pair.handle("1", len(first) + answer - 1) if handle else None
    later, more_later = talk.turn("2", second, at_ms=5000, given=given, local=local, keys=keys, **fields)
    told = [*more, *more_later] if digests else []
    return Run().feed([*pair.start(), *events, *later, *told]).wait()


def answer_of(size: int = 600) -> list[int]:
    """What the first turn is answered with."""
    talk = Talk(Pair())
    talk.turn("1", SYSTEM, size)
    return talk.answers["1"]


FAITHFUL = [*SYSTEM, *answer_of(), *USER]


def encloses(turn: Turn, position: int, *, within: int) -> bool:
    """Whether the bounds of the divergence are about ``position``, and no farther apart than ``within``."""
    low, high = turn.diverged_after, turn.diverged_before
    return low is not None and high is not None and low <= position < high and high - low <= within
