"""What happened to a turn, in sentences."""

from __future__ import annotations

from typing import Any, NamedTuple

from turnscope.semconv import DIVERGENCES, Status, diverges_in
from turnscope.store.fates import Fate
from turnscope_app import doubt, text, words

Turn = dict[str, Any]
"""A row of the store reader's turns."""


def numbers(indexes: list[int | None], offset: int = 0) -> list[int]:
    """Each turn's number: its index in the session, or its place in the list where indexes are missing or repeat."""
    known = [index for index in indexes if index is not None]
    if len(set(known)) < len(indexes):
        return list(range(offset + 1, offset + 1 + len(indexes)))
    return known


def prompt(turn: Turn) -> str:
    """Where the prompt's tokens came from."""
    total = turn["prompt_tokens"]
    if total is None:
        return (
            "The prompt's length was not measured: the server that reads prompts (prefill engine) did not report this "
            "turn."
        )
    parts = []
    if turn["local_hit_tokens"]:
        parts.append(f"{turn['local_hit_tokens']:,} were in the own memory of {doubt.READER}")
    if turn["fetched_tokens"]:
        parts.append(f"{turn['fetched_tokens']:,} were fetched back{_fetch(turn)} from {doubt.WRITER}")
    if turn["external_tokens"]:
        parts.append(f"{turn['external_tokens']:,} came from another KV store")
    if turn["computed_tokens"]:
        parts.append(f"{turn['computed_tokens']:,} were computed{_split(turn)}")
    if not parts:
        return f"The prompt had {total:,} tokens; where they came from was not measured."
    return f"Of the prompt's {total:,} tokens, {_listed(parts)}."


def _fetch(turn: Turn) -> str:
    facts = []
    if turn["fetched_bytes"] is not None:
        facts.append(text.size(turn["fetched_bytes"]))
    if turn["fetch_ns"] is not None:
        facts.append(f"in {text.duration(turn['fetch_ns'])}")
    return f" ({' '.join(facts)})" if facts else ""


def _split(turn: Turn) -> str:
    if turn["recomputed_tokens"] is None or turn["new_tokens"] is None:
        return ""
    return f" ({turn['recomputed_tokens']:,} of them had been computed before)"


def why(turn: Turn) -> str:
    """Why no more was fetched back."""
    word = words.REASONS.get(turn["reason"])
    return word.story if word else f"The reason given is {text.harmless(turn['reason'])}."


def parted(turn: Turn) -> str:
    """Which part of the request is not as the turn before had it; empty where nothing was seen to differ."""
    role, kind = turn["diverged_role"], turn["diverged_kind"]
    if role is None:
        return ""
    where = diverges_in(turn["diverged_message"], text.harmless(role))
    what = DIVERGENCES.get(kind, text.harmless(str(kind).replace("_", " ")))
    before, now = turn["diverged_chars_before"], turn["diverged_chars"]
    size = f"; {before or 0:,} characters before, {now or 0:,} now" if (before, now) != (None, None) else ""
    late = " Only lengths could be compared: it may differ earlier." if turn["diverged_evidence"] == "lengths" else ""
    return f"The request diverges from the turn before in {where} ({what}{size}).{late}"


def ending(turn: Turn) -> str:
    """How the turn ended; empty when it was simply answered."""
    if turn["status"] == Status.OK:
        return ""
    word = words.STATUSES.get(turn["status"])
    said = word.story if word else f"The turn ended as {text.harmless(turn['status'])}."
    return said if turn["stage"] is None else f"{said[:-1]} (at: {text.harmless(turn['stage'])})."


def kept(turn: Turn) -> str:
    """What the decode engine kept for the next turn, and what became of it."""
    if turn["left_hold_id"] is None:
        return "No memory was kept for a next turn, as far as was seen."
    if not turn["hold_seen"]:
        return "Memory was kept for the next turn; what became of it has not been reported."
    what = "Memory" if turn["hold_tokens"] is None else f"Memory of {turn['hold_tokens']:,} tokens"
    if turn["hold_fate"] == Fate.HELD:
        return f"{what} is still kept by {doubt.WRITER} for the next turn."
    for_time = "" if turn["hold_held_ns"] is None else f" for {text.duration(turn['hold_held_ns'])}"
    return f"{what} was kept by {doubt.WRITER}{for_time}. {_fate(turn)}"


def _fate(turn: Turn) -> str:
    pause, held = turn["hold_pause_ns"], turn["hold_held_ns"]
    if turn["hold_fate"] == Fate.TOO_LATE and held is not None:
        return (
            f"The next turn came after {text.duration(pause)}, {text.duration(pause - held)} too late: with a longer "
            "decoder_kv_blocks_ttl it could have fetched it back."
        )
    if turn["hold_fate"] == Fate.NOT_ASKED:
        return f"The next turn came after {text.duration(pause)}, in time, and did not fetch it: its reason says why."
    word = words.FATES.get(turn["hold_fate"])
    return word.story if word else text.harmless(str(turn["hold_fate"]))


def whole(turn: Turn) -> list[str]:
    """The turn's story, a sentence or two each."""
    parts = [prompt(turn), why(turn), parted(turn), ending(turn), kept(turn)]
    return [p for p in parts if p]


def warning(turn: Turn) -> str:
    """Why the turn's answer may be wrong; empty when there is no suspicion."""
    found = []
    for suspicion in turn["suspicions"] or []:
        word = words.SUSPICIONS.get(suspicion)
        found.append(f"{word.shown}: {word.story}" if word else f"{text.harmless(suspicion)}.")
    if not found:
        return ""
    return " ".join(said for said in (*found, doubt.memory(turn), doubt.proof(turn)) if said)


def unattributed(summary: dict[str, Any], *, proxy_reports: bool) -> str:
    """What turns without a session id are. ``proxy_reports``: a proxy hook reported other turns of this store."""
    said = (
        f"{text.turns(summary['turns'])} came without a session id. They belong to no session, nothing could be "
        "fetched back for them, and they are in none of the counts of sessions."
    )
    past_proxy = summary["turns"] - summary["attempt_turns"]
    if past_proxy and proxy_reports:
        some = "None of them" if not summary["attempt_turns"] else f"{past_proxy:,} of them"
        verb = "came" if not summary["attempt_turns"] else "did not come"
        said += f" {some} {verb} through the proxy: an engine's warm-up or a health check looks like that."
    return said


class Telling(NamedTuple):
    """The turn to tell first."""

    position: int
    why: str


def most_telling(turns: list[Turn]) -> Telling:
    """Of at least one turn, the one to tell first: a wrong answer weighs more than none, and none more than a slow
    one. Of such the first, since later ones may follow from it; of slow ones that which read most again."""
    for test, why in (
        (
            lambda turn: bool(turn["suspicions"]),
            "the first whose answer may be wrong: that weighs more than slowness, and later ones may follow from it",
        ),
        (lambda turn: turn["status"] != Status.OK, "the first that was not answered: later ones may follow from it"),
    ):
        for position, turn in enumerate(turns):
            if test(turn):
                return Telling(position, why)
    again = read_most_again(turns)
    if again is not None:
        return Telling(again, "the one that read most again (recomputed)")
    return Telling(len(turns) - 1, "the last: nothing went wrong, and nothing is known to have been read again")


def read_most_again(turns: list[Turn]) -> int | None:
    """The position of the turn that read most again; None where none is known to have read anything again."""
    again = [turn["recomputed_tokens"] or 0 for turn in turns]
    return again.index(max(again)) if any(again) else None


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
