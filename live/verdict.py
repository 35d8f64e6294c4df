"""What the store says of each turn, against what the client did: one sentence for each thing that is not right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from live.conversations import Act
from live.driver import TurnTruth

Row = Mapping[str, Any]
"""A turn of the store: the fields of ``turnscope.model.Turn``."""

MARGIN_S = 6.0
"""P declines within 5 s of the hold's end."""
LEASE_S = 30.0
"""How long P keeps blocks for D."""
STATUS = {"ok": "ok", "error": "error", "left": "cancelled", "unanswered": "stuck"}
LATE = (Act.WAIT_PAST_TTL, Act.LATE_WITHOUT_EXPIRY)
FETCHED = {"reverse_fetch", "mixed"}
LITTLE_LEFT = {"local_hit_covers", "below_threshold"}
"""P had so much of the prompt itself that nothing, or less than the threshold, was left to fetch."""


@dataclass
class Verdict:
    """The outcome for one run."""

    judged: int = 0
    """Turns whose reason was judged."""
    too_slow: int = 0
    """Turns whose reason was not: the machine was so slow that D or P dropped blocks that were meant to be read."""
    shown: set[str] = field(default_factory=set)
    """Reasons that were expected and given."""
    problems: list[str] = field(default_factory=list)


def judge(truth: Iterable[TurnTruth], rows: Iterable[Row]) -> Verdict:
    """``truth`` in the order in which turns ended; ``rows`` in any."""
    verdict = Verdict()
    by_caller: dict[str, list[Row]] = {}
    unclaimed: dict[str, list[Row]] = {}
    for row in rows:
        by_caller.setdefault(str(row["caller_trace_id"]), []).append(row)
        if not row["has_attempt"]:
            unclaimed.setdefault(str(row["session_id"]), []).append(row)
    previous: dict[tuple[str, str], TurnTruth] = {}
    late: set[tuple[str, str]] = set()
    for turn in truth:
        conversation = turn.configuration, turn.conversation
        before = previous.get(conversation)
        if before and turn.act not in LATE and _age_s(before, turn) > turn.hold_ttl_s - MARGIN_S:
            late.add(conversation)
        previous[conversation] = turn
        found = by_caller.get(turn.traceparent.split("-")[1], [])
        if turn.outcome == "unanswered" and not found:
            # The proxy still waits for P, and tells of a request when it has ended: only the session names it.
            found = unclaimed.get(str(turn.session_id), [])
        where = f"{turn.configuration} {turn.conversation} turn {turn.turn}"
        if len(found) != 1:
            verdict.problems.append(f"{where}: {len(found)} turns in the store, not one")
            continue
        verdict.problems += [f"{where}: {problem}" for problem in tokens(turn, found[0])]
        if conversation in late or (turn.outcome != "unanswered" and turn.total_ns / 1e9 > LEASE_S - MARGIN_S):
            verdict.too_slow += 1
            continue
        verdict.judged += 1
        problems = list(_words(turn, found[0]))
        verdict.problems += [f"{where}: {problem}" for problem in problems]
        if not problems:
            verdict.shown.add(found[0]["reason"])
    return verdict


def _age_s(before: TurnTruth, turn: TurnTruth) -> float:
    """At most this long after the previous answer began P looked at the handle."""
    looked = turn.started_wall_ns + (turn.total_ns if turn.ttft_ns is None else turn.ttft_ns)
    return (looked - before.started_wall_ns - before.total_ns) / 1e9


def tokens(turn: TurnTruth, row: Row) -> Iterable[str]:
    """The token law, and the client's own count."""
    parts = [row[f"{name}_tokens"] for name in ("local_hit", "fetched", "external", "computed")]
    prompt = row["prompt_tokens"]
    if None in parts or prompt is None:
        if turn.outcome not in ("error", "unanswered"):
            yield f"tokens unknown: {parts} of {prompt}"
    elif sum(parts) != prompt or min(parts) < 0:
        yield f"token law broken: {parts} do not make {prompt}"
    if turn.prompt_tokens not in (None, prompt):
        yield f"the client's usage said {turn.prompt_tokens} prompt tokens, the store says {prompt}"
    split = row["recomputed_tokens"], row["new_tokens"]
    if None not in split and sum(split) != row["computed_tokens"]:
        yield f"recomputed and new {split} do not make {row['computed_tokens']}"


def _expected(turn: TurnTruth, row: Row) -> tuple[str, ...]:
    """With prefix caching on, what P has itself can leave less to fetch than the threshold, or nothing."""
    offered, local, threshold = row["offered_tokens"], row["local_hit_tokens"], row["threshold_tokens"]
    if "none" in turn.reasons and local and None not in (offered, threshold):
        left = min(offered, row["prompt_tokens"]) - local
        if left < threshold:
            return ("below_threshold",) if left > 0 else ("local_hit_covers",)
    return turn.reasons


def _words(turn: TurnTruth, row: Row) -> Iterable[str]:
    """Reason, path, status and session."""
    little_left = row["path"] == "local_hit" and row["reason"] in LITTLE_LEFT and "none" in turn.reasons
    if row["reason"] not in turn.reasons and not little_left:
        yield f"reason {row['reason']}, expected {' or '.join(turn.reasons)} (path {row['path']})"
    if (row["path"] in FETCHED) != (row["reason"] == "none"):
        yield f"path {row['path']} with reason {row['reason']}"
    if row["status"] != STATUS[turn.outcome]:
        yield f"status {row['status']}, but the client saw {turn.outcome}"
    if row["session_id"] != turn.session_id:
        yield f"session {row['session_id']}, but the client called it {turn.session_id}"
    found, wanted, possible = set(row["suspicions"]), set(turn.suspicions), set(turn.perhaps)
    if missed := wanted - found:
        yield f"not suspected of {', '.join(sorted(missed))}"
    if wrongly := found - wanted - possible:
        yield f"suspected of {', '.join(sorted(wrongly))}, and that was not wrong"
