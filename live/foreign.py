"""Turns through proxies without a hook: what engines alone can tell must come out, and nothing must be made up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from live.conversations import FIRST, NONE, Conversation, Groups, Tells
from live.driver import TurnTruth
from live.fronts import Front
from live.verdict import Row, Verdict, tokens
from turnscope.model import Turn

UNKNOWN = ("unknown",)
ONLY_A_PROXY_KNOWS: Final = (
    *(name for name in Turn.__struct_fields__ if name.startswith(("ttft_", "caller_", "server_"))),
    "duration_ns",
    "streamed",
    "tool_calls",
    "agent_id",
    "diverged_message",
    "diverged_role",
    "diverged_kind",
    "diverged_chars",
    "diverged_evidence",
    "retry_of",
    "fork_of",
)
"""Fields of a turn that nothing but a proxy's hook can fill."""


def behind_the_router() -> Groups:
    """vllm-router gives no handle to any turn. A session named in the body comes through, one in a header does not."""
    return (
        (
            Conversation("router-body", (FIRST, UNKNOWN, UNKNOWN), tells=Tells.BODY, streamed=False),
            Conversation("router-stream", (FIRST, UNKNOWN), tells=Tells.BODY),
        ),
        (Conversation("router-header", (UNKNOWN, UNKNOWN), tells=Tells.HEADER),),
    )


def behind_the_bare_proxy() -> Groups:
    """A proxy that keeps handles: they chain turns, whether or not engines hear of a session."""
    return (
        (
            Conversation("bare-chained", (UNKNOWN, NONE, NONE)),
            Conversation("bare-whole", (UNKNOWN, NONE), streamed=False),
        ),
        (
            Conversation("bare-header", (FIRST, NONE, NONE), tells=Tells.HEADER),
            # Whose fault it is that no handle came along, engines cannot tell.
            Conversation("bare-unpatched", (FIRST, UNKNOWN), tells=Tells.HEADER, handle_in_stream=False),
        ),
    )


def large(number: int) -> Conversation:
    """One turn that moves more than a MiB from P to D."""
    return Conversation(f"large-{number}", (UNKNOWN,), tells=Tells.HEADER, words=400)


def judge(truth: Iterable[TurnTruth], rows: Iterable[Row], verdict: Verdict) -> None:
    """Add to ``verdict`` what is not right with the turns that no hook saw at a proxy."""
    rows = list(rows)
    conversations: dict[tuple[str, str], list[Row]] = {}
    for turn in truth:
        where = f"{turn.configuration} {turn.front} {turn.conversation} turn {turn.turn}"
        found = [row for row in rows if turn.answer_id and str(row["decode_request_id"]).startswith(turn.answer_id)]
        if len(found) != 1:
            verdict.problems.append(f"{where}: {len(found)} turns in the store, not one")
            continue
        before = conversations.setdefault((turn.configuration, turn.conversation), [])
        problems = [*tokens(turn, found[0]), *_facts(turn, found[0]), *_session(turn, found[0], before)]
        verdict.problems += [f"{where}: {problem}" for problem in problems]
        verdict.judged += 1
        before.append(found[0])


def _facts(turn: TurnTruth, row: Row) -> Iterable[str]:
    wanted: Mapping[str, Any] = {
        "has_prefill": True,
        "has_decode": True,
        "has_attempt": False,
        "join": "exact",
        "status": "ok",
        "suspicions": [],
        "output_tokens": turn.output_tokens,
        "path": "reverse_fetch" if "none" in turn.reasons else "recompute",
        **dict.fromkeys(ONLY_A_PROXY_KNOWS),
    }
    for name, value in wanted.items():
        if row[name] != value:
            yield f"{name} is {row[name]}, expected {value}"
    if row["reason"] not in turn.reasons:
        yield f"reason {row['reason']}, expected {' or '.join(turn.reasons)}"


def _session(turn: TurnTruth, row: Row, before: list[Row]) -> Iterable[str]:
    """A session as far as engines heard of it, or by the handles that went round; else none."""
    told = turn.tells is Tells.BODY or (turn.tells is Tells.HEADER and turn.front is Front.BARE)
    source: str | None = None
    index: int | None = None
    previous: str | None = None
    session: str | None = None
    if told or turn.front is Front.BARE:
        source, index = "engine" if told else "chained", turn.turn
        previous = before[-1]["turn_id"] if before else None
        session = turn.session_id if told else (before[0]["session_id"] if before else row["session_id"])
    wanted = {"session_id": session, "session_source": source, "turn_index": index, "previous_turn_id": previous}
    for name, value in wanted.items():
        if row[name] != value:
            yield f"{name} is {row[name]}, expected {value}"
    if source == "chained" and (session is None or session == turn.session_id):
        yield f"session {session}: engines never heard a name, and handles make a chain of their own"
