"""Conversations in which something is wrong on purpose, and what turnscope must make of each.

Three kinds: one trouble a conversation, beside a faithful one of which nothing must be suspected; troubles drawn at
random from a seed, the driver's own log of causes being the truth; and a D that is killed and comes back.
"""

from __future__ import annotations

import random

from live.conversations import AFTER_FAILURE, FIRST, NONE, Act, Conversation, Groups

MISMATCH = ("kv_mismatch",)
LOST_HOLDER = ("holder_lost",)
RANDOM_TURNS = 5


def single_troubles() -> Groups:
    """One trouble each; where KV is wrong, everything that is built on it is wrong too."""
    return (
        (Conversation("faithful", (FIRST, NONE, NONE, NONE), tools=True),),
        (
            Conversation(
                "system-replaced",
                (FIRST, NONE, NONE),
                acts={2: Act.REPLACE_SYSTEM},
                suspicions={2: MISMATCH, 3: MISMATCH},
            ),
            Conversation(
                "answer-shortened",
                (FIRST, NONE, NONE),
                acts={2: Act.SHORTEN_ANSWER},
                suspicions={2: MISMATCH, 3: MISMATCH},
            ),
        ),
        (
            Conversation(
                "handle-given-twice",
                (FIRST, NONE, NONE),
                acts={2: Act.GIVE_AGAIN},
                suspicions={3: ("duplicate_handle",)},
                # D has let go of the blocks after the first read; whether it says so depends on who asks first.
                perhaps={3: ("read_after_release", "stale_handle")},
            ),
        ),
        (
            Conversation(
                "late-without-expiry",
                (FIRST, NONE),
                acts={2: Act.LATE_WITHOUT_EXPIRY},
                suspicions={2: ("read_after_release",)},
                perhaps={2: ("stale_handle",)},
            ),
        ),
        *(
            (Conversation(name, (FIRST, ("declined_expired",), AFTER_FAILURE), acts={2: Act.WAIT_PAST_TTL}),)
            for name in ("late", "late-too", "late-as-well")
        ),
        (
            Conversation("lost", (FIRST, ("handle_not_given",), NONE), acts={2: Act.LOSE_HANDLE}),
            Conversation("short", (FIRST, ("below_threshold",)), short=True),
        ),
    )


def random_troubles(seed: int, count: int = 6) -> Groups:
    """``count`` conversations at the same time, each turn with a trouble drawn from ``seed`` or none."""
    draw = random.Random(seed)
    return tuple((_random_conversation(f"random-{seed}-{number}", draw),) for number in range(count))


def _random_conversation(name: str, draw: random.Random) -> Conversation:
    reasons: list[tuple[str, ...]] = [FIRST]
    acts: dict[int, Act] = {}
    suspicions: dict[int, tuple[str, ...]] = {}
    wrong = False
    """The KV that D holds of this conversation is not that of its text."""
    for turn in range(2, RANDOM_TURNS + 1):
        before = acts.get(turn - 1, Act.NONE)
        if before in (Act.LEAVE, Act.WAIT_PAST_TTL):
            # Nothing was left to fetch: computed anew, and right again.
            reasons.append(AFTER_FAILURE)
            wrong = False
            continue
        act = draw.choices(
            (Act.NONE, Act.LOSE_HANDLE, Act.LEAVE, Act.REPLACE_SYSTEM, Act.SHORTEN_ANSWER, Act.WAIT_PAST_TTL),
            (8, 3, 2, 2, 2, 1),
        )[0]
        if act is Act.REPLACE_SYSTEM and Act.REPLACE_SYSTEM in acts.values():
            act = Act.NONE
        if act is not Act.NONE:
            acts[turn] = act
        reasons.append(
            {Act.LOSE_HANDLE: ("handle_not_given",), Act.WAIT_PAST_TTL: ("declined_expired",)}.get(act, NONE)
        )
        if act in (Act.LOSE_HANDLE, Act.WAIT_PAST_TTL):
            wrong = False
        elif act in (Act.REPLACE_SYSTEM, Act.SHORTEN_ANSWER):
            wrong = True
        if wrong:
            suspicions[turn] = MISMATCH
    return Conversation(name, tuple(reasons), acts=acts, suspicions=suspicions)


def around_a_crash(count: int = 3) -> tuple[Conversation, ...]:
    """Two turns before D is killed, two after."""
    return tuple(
        Conversation(f"holder-lost-{number}", (FIRST, NONE, LOST_HOLDER, AFTER_FAILURE)) for number in range(count)
    )


def decode_off() -> Groups:
    """D has reverse transfer off: it keeps nothing for the next turn."""
    return ((Conversation("not-held", (FIRST, ("feature_off_decode",))),),)


def every_other_answer_by_the_spare(count: int = 3) -> Groups:
    """One after the other, so that second turns go to the pair's second D, whose handshake with P fails."""
    return (tuple(Conversation(f"every-other-{number}", (FIRST, NONE)) for number in range(count)),)


def late_under_recompute() -> Groups:
    """With ``kv_load_failure_policy: recompute``: P promises to compute what it can no longer fetch, and parks the
    request for ever. The client gives up in the end."""
    return (
        (Conversation("faithful", (FIRST, NONE)),),
        (Conversation("late", (FIRST, ("stuck",)), acts={2: Act.WAIT_PAST_TTL}),),
    )
