"""The page about suspicions, without Streamlit: its cards, columns, and each one's evidence in sentences."""

from __future__ import annotations

from typing import Final

from turnscope.semconv import MismatchEvidence, Suspicion, diverges_in
from turnscope.store.fates import Fate
from turnscope_app import doubt, stories, text, words
from turnscope_app.cards import Card
from turnscope_app.columns import TURN, Column, Kind, Row

STEPS: Final[dict[str, str]] = {
    Suspicion.KV_MISMATCH: "Ask again in a new session before you rely on this answer. Then see to it that the proxy "
    "gives a handle only to a request that continues the turn it came from: clients keep the history, reasoning "
    "included, as it was sent, put what changes from turn to turn behind it, and take a new session id when they "
    "edit it. Empty the cache of the server that reads prompts afterwards (prefill engine).",
    Suspicion.READ_AFTER_RELEASE: "Ask again before you rely on this answer. Then let the proxy pass "
    "`kv_transfer_params` on whole, with `remote_blocks_expiry_time`, keep handles for 5 s less than "
    "`decoder_kv_blocks_ttl`, and keep the hosts' clocks in step.",
    Suspicion.STALE_HANDLE: "Ask again before you rely on this answer. Then let the proxy drop the handles of a server "
    "(decode engine) that was restarted, and those whose time limit is over.",
    Suspicion.DUPLICATE_HANDLE: "Ask again before you rely on this answer. Then let the proxy remove a handle when it "
    "gives it (take, not read), under a lock that its processes share; retries and regenerations go without it.",
    Suspicion.ANSWERED_AFTER_FAILED_LOAD: "Ask again before you rely on this answer. Then mend the pair of engines "
    "that cannot read from each other, and set `kv_load_failure_policy` to `fail` until then.",
}
"""What to do about each kind."""
RUNBOOKS: Final[dict[str, str]] = {
    Suspicion.KV_MISMATCH: "TurnscopeKvMismatch.md",
    Suspicion.READ_AFTER_RELEASE: "TurnscopeReadAfterRelease.md",
    Suspicion.STALE_HANDLE: "TurnscopeHandleReused.md",
    Suspicion.DUPLICATE_HANDLE: "TurnscopeHandleReused.md",
    Suspicion.ANSWERED_AFTER_FAILED_LOAD: "TurnscopeAnsweredAfterFailedLoad.md",
}
"""Of the alert about each kind."""


def counted(every: Row) -> list[Card]:
    """How many answers may be wrong, how many of them somebody was given, and how sure it is: no turn is in two of the
    last two. ``every``: the sums over all kinds."""
    turns, proven = every["turns"], every["proven"]
    if not turns:
        return [Card("Possibly wrong answers", "none", f"Of {text.turns(every['judged'])}.")]
    return [
        Card(
            "Possibly wrong answers",
            text.turns(turns),
            f"Of {every['judged']:,} ({text.share(turns, every['judged'])}), in {text.sessions(every['sessions'])}: "
            f"with "
            "evidence that reused memory did not belong to the prompt.",
        ),
        Card("Given to clients", text.turns(every["answered"]), "Answered to the end; the others failed or broke off."),
        Card("Proven", text.turns(proven), "The memory was of another text: digests of the tokens differ."),
        Card(
            "Suspected",
            text.turns(turns - proven),
            "The order of events, or lengths, allow it: nobody could compare the text.",
            words.Known.INFERRED,
        ),
    ]


def kinds(rows: list[Row]) -> dict[str, str]:
    """The kinds that occur, the frequent first, and what they are called: Markdown, with how many turns each has."""
    return {
        row["kind"]: text.escaped(f"{text.worded(words.SUSPICIONS, row['kind'])}: {row['turns']:,}")
        for row in rows
        if row["kind"] is not None
    }


def meaning(every: Row) -> str:
    """What it means for whoever was given the answers, how sure it is, and what to do."""
    turns, given, proven = every["turns"], every["answered"], every["proven"]
    rest = turns - given
    ended = f"; the other {rest:,} failed or were broken off before their end" if rest else ""
    sure = (
        f"For {proven:,} of the {text.turns(turns)} it is **proven** that memory of another text was reused, for the "
        f"other {turns - proven:,} **suspected**"
        if proven < turns
        else f"For all of the {text.turns(turns)} it is **proven** that memory of another text was reused"
    )
    return (
        f"**{given:,} of these answers were given to clients**{ended}. Such an answer may rest on another text's "
        f"memory: it may be about something that nobody asked. {sure}; whether that made an answer wrong is not known, "
        "since turnscope does not read answers. **What to do:** ask again in a new session what relies on them; then "
        "open one below, which says how it came about and what to change."
    )


def apart(every: Row) -> str:
    """What is no suspicion, so that nobody looks for it here."""
    failed = f"{text.turns(every['failed'])} of this period failed, were cancelled or are stuck"
    compared = text.share(every["compared"], every["judged"])
    return (
        f"Failures are another matter: {failed}, and said so. The answers here came as if all were well. Prompts could "
        f"be compared with what their sessions had computed for {compared} of the turns; of the others only other "
        "evidence can tell."
    )


_SURE: Final[dict[str | None, str]] = {
    MismatchEvidence.DIGESTS: "proven",
    MismatchEvidence.LENGTHS: "suspected, by lengths",
    MismatchEvidence.INFERRED: "suspected, inferred",
    None: "suspected",
}
LISTED: Final = (
    *(column._replace(width=150) if column.name == "session" else column for column in TURN),
    Column(
        "suspicions",
        "Suspicion",
        "What speaks against the answer.",
        width=185,
        value=lambda row: ", ".join(_kind(kind) for kind in row["suspicions"] or []),
    ),
    Column(
        "mismatch_evidence",
        "Proven",
        "Proven by digests; suspected by lengths, or inferred from another turn.",
        width=130,
        value=lambda row: _SURE.get(row["mismatch_evidence"], _SURE[None]),
    ),
    Column("status", "Ended", "Whether the turn was answered.", Kind.WORD, 105, words.STATUSES),
    Column(
        "suspect_tokens",
        "In doubt",
        "Of the reused part, what may be memory of other text; it saved nothing (suspect).",
        Kind.TOKENS,
        120,
    ),
    Column(
        "diverged_before",
        "From token",
        "From so many tokens on, at the latest, its text is another one.",
        Kind.COUNT,
        90,
    ),
    Column("where", "In", "The part of the request that differs first.", width=130, value=lambda row: _where(row)),
)


def _kind(kind: str) -> str:
    word = words.SUSPICIONS.get(kind)
    return word.plain if word else text.harmless(kind)


def _where(row: Row) -> str:
    if row["diverged_role"] is None:
        return ""
    return text.harmless(diverges_in(row["diverged_message"], row["diverged_role"]))


def titled(row: Row) -> str:
    """Which turn it is."""
    number = "A turn" if row["turn_index"] is None else f"Turn {row['turn_index']:,}"
    return f"{number} of {text.session(row['session_id'])}"


def evidence(row: Row) -> list[tuple[str, str]]:
    """(what, sentence) of one turn: what speaks against its answer, where, and what it was compared with."""
    found = []
    for kind in row["suspicions"] or []:
        word = words.SUSPICIONS.get(kind)
        found.append((word.shown, word.story) if word else (text.harmless(kind), "A newer turnscope knows what it is."))
    found.append(("Proven or suspected", doubt.proof(row)))
    memory = doubt.memory(row)
    if memory:
        found.append(("Which memory", f"{memory} None of it is counted as saved."))
    found.append(("What the client was given", "The whole answer." if doubt.answered(row) else stories.ending(row)))
    found.append(("Which turn", f"{titled(row)}, {text.when(row['started_ns'])}, {_served(row)}."))
    position = _position(row)
    if position:
        found.append(("Where", position))
    parted = stories.parted(row)
    if parted:
        found.append(("In the request", parted))
    found.append(("Compared with", _compared(row)))
    found += _too_late(row)
    return found


def _served(row: Row) -> str:
    named = [text.harmless(row[name]) for name in ("prefill_engine", "decode_engine") if row[name]]
    return f"served by {' and '.join(named)}" if named else "by engines that were not seen"


def _position(row: Row) -> str:
    after, before = row["diverged_after"], row["diverged_before"]
    if before is None and after is None:
        return ""
    same = "from its first token on" if not after else f"after its first {after:,} tokens"
    if before is None:
        return f"The prompt is known to be the same text for its first {after:,} tokens."
    return f"The prompt goes another way {same}: at position {before:,} at the latest."


def _compared(row: Row) -> str:
    if row["held_engine"] is not None:
        left = "an earlier turn" if row["held_turn_index"] is None else f"turn {row['held_turn_index']:,}"
        if row["held_session_id"] not in (None, row["session_id"]):
            left += f" of {text.session(row['held_session_id'])}"
        kept = "" if row["held_tokens"] is None else f" ({row['held_tokens']:,} tokens)"
        became = words.FATES.get(row["held_outcome"] or Fate.HELD)
        end = f" {became.plain}." if became else ""
        engine, at = text.harmless(row["held_engine"]), text.when(row["held_started_ns"])
        return f"What {left} left on {engine} at {at}{kept}.{end}"
    if row["previous_turn_id"] is not None:
        number = "the turn before it" if row["previous_index"] is None else f"turn {row['previous_index']:,}"
        return f"The prompt and the answer of {number}; what was kept of it is not in the store."
    return "Nothing that is in the store any more."


def _too_late(row: Row) -> list[tuple[str, str]]:
    found = []
    if row["late_by_ns"] is not None and row["late_by_ns"] > 0:
        error = "" if not row["late_by_error_ns"] else f", give or take {text.duration(row['late_by_error_ns'])}"
        found.append(
            (
                "Too late",
                f"The handle was used {text.duration(row['late_by_ns'])} after what it is for was let go{error}.",
            )
        )
    if row["held_late_notices"]:
        found.append(
            (
                "Read after its end",
                f"{row['held_late_notices']:,} readers' notices came after the blocks had been given up, the last "
                f"{text.duration(row['held_late_notice_ns'])} after they had been kept first.",
            )
        )
    return found


def next_steps(row: Row) -> list[str]:
    """What to do about it, a paragraph a kind."""
    return [STEPS[kind] for kind in row["suspicions"] or [] if kind in STEPS]


def runbooks(row: Row) -> list[str]:
    """The runbooks for it, each once."""
    return list(dict.fromkeys(RUNBOOKS[kind] for kind in row["suspicions"] or [] if kind in RUNBOOKS))
