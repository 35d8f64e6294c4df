"""What the driver does: twelve conversations of four turns, and what each special one is meant to show."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from live.leaks import CANARY


class Act(StrEnum):
    """What is done to one turn, apart from asking it."""

    NONE = "none"
    WAIT_PAST_TTL = "wait_past_ttl"
    """Before it, wait until D has dropped the previous turn's blocks."""
    LOSE_HANDLE = "lose_handle"
    """Before it, the proxy loses the conversation's handle."""
    LEAVE = "leave"
    """The client leaves in the middle of the answer."""
    GIVE_AGAIN = "give_again"
    """The proxy gives the handle of this turn to the next one too."""
    LATE_WITHOUT_EXPIRY = "late_without_expiry"
    """Before it, wait until D has dropped the blocks; the proxy's handle has lost the field that would tell P."""
    REPLACE_SYSTEM = "replace_system"
    """The client puts another system prompt in the place of the one that D has seen."""
    SHORTEN_ANSWER = "shorten_answer"
    """The client resends only half of the previous answer, as clients do that strip reasoning."""


class Tells(StrEnum):
    """How a client names its conversation."""

    PROXY = "proxy"
    """To a proxy only, which keeps handles by it; engines never hear it."""
    BODY = "body"
    """In the body's field that engines read as well."""
    HEADER = "header"
    """In the header that engines read, where a proxy passes it on."""


@dataclass(frozen=True)
class Conversation:
    """One conversation and the reason turnscope should give, turn by turn."""

    name: str
    reasons: tuple[tuple[str, ...], ...]
    """For each turn the reasons that are right."""
    acts: dict[int, Act] = field(default_factory=dict)
    """By turn number, from 1."""
    streamed: bool = True
    handle_in_stream: bool = True
    with_id: bool = True
    tells: Tells = Tells.PROXY
    short: bool = False
    """Prompts so small that only the third answer's handle (73 tokens) reaches the threshold of 64."""
    words: int = 180
    """Of the first thing that the user says."""
    seed: str | None = None
    """Of the words that the user says; its name where None."""
    answer: int = 48
    """Tokens of an answer."""
    tools: bool = False
    """The client has tools, and sends what they gave in the place of what the user says."""
    suspicions: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """By turn number: what turnscope must suspect. Of a turn that is not named it must suspect nothing."""
    perhaps: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """By turn number: what it may suspect as well, where that depends on the moment."""

    @property
    def turns(self) -> int:
        """How many turns it has."""
        return len(self.reasons)

    def act(self, turn: int) -> Act:
        """What is done to this turn."""
        return self.acts.get(turn, Act.NONE)


Groups = tuple[tuple[Conversation, ...], ...]
"""Conversations of one group run one after the other, the groups at the same time."""

FIRST = ("first_turn",)
NONE = ("none",)
AFTER_FAILURE = ("previous_turn_aborted",)


def conversations() -> Groups:
    """The twelve."""
    return (
        (
            Conversation("plain-1", (FIRST, NONE, NONE, NONE)),
            Conversation("plain-2", (FIRST, NONE, NONE, NONE)),
            Conversation("whole", (FIRST, NONE, NONE, NONE), streamed=False),
            Conversation("unpatched-1", (FIRST, *[("no_handle_from_decode",)] * 3), handle_in_stream=False),
            Conversation("unpatched-2", (FIRST, *[("no_handle_from_decode",)] * 3), handle_in_stream=False),
            Conversation("short", (FIRST, ("below_threshold",), ("below_threshold",), NONE), short=True),
            Conversation("nameless", (("no_session_id", "first_turn"), *[("no_session_id",)] * 3), with_id=False),
            Conversation("lost", (FIRST, NONE, ("handle_not_given",), NONE), acts={3: Act.LOSE_HANDLE}),
            Conversation("left", (FIRST, NONE, NONE, AFTER_FAILURE), acts={3: Act.LEAVE}),
        ),
        (Conversation("late", (FIRST, NONE, ("declined_expired",), AFTER_FAILURE), acts={3: Act.WAIT_PAST_TTL}),),
        (Conversation("beside-1", (FIRST, NONE, NONE, NONE)),),
        (Conversation("beside-2", (FIRST, NONE, NONE, NONE)),),
    )


_WORDS = re.findall(
    r"\w+",
    "order refund ticket customer invoice parcel address carrier policy answer summary table column value "
    "price stock garden kitchen window river mountain letter number morning evening system model request "
    "engine cache block token measure compare explain describe collect return deliver repeat check write read "
    "open close find keep move turn ",
)


def text(seed: str, words: int) -> str:
    """``words`` words, the same for the same seed."""
    chosen = random.Random(seed)
    return " ".join(chosen.choice(_WORDS) for _ in range(words))


SYSTEM = {"role": "system", "content": f"You are a helpful agent. {CANARY} {text('system', 190)}"}
OTHER_SYSTEM = {"role": "system", "content": f"You are a helpful agent. {CANARY} {text('another system', 190)}"}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "look_up", "description": f"Look up {CANARY}.", "parameters": {}}}
]


def user_message(conversation: Conversation, turn: int) -> dict[str, str]:
    """What the user says in this turn: numbered, so that no two conversations share more than the system prompt."""
    words = 1 if conversation.short else (conversation.words if turn == 1 else 60)
    said = f"{conversation.name}: {text(f'{conversation.seed or conversation.name} {turn}', words)}"
    if conversation.tools and turn > 1:
        return {"role": "tool", "tool_call_id": f"call-{turn}", "content": f"{CANARY} {said}"}
    return {"role": "user", "content": said if conversation.short else f"{CANARY} {said}"}


def answer_tokens(conversation: Conversation, turn: int) -> int:
    """How long the answer may be; one that is left in the middle has to last."""
    if conversation.act(turn) is Act.LEAVE:
        return 600
    return 4 if conversation.short else conversation.answer
