"""Which memory a turn in doubt rests on: whose, how much of it, and whether that is proven."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from turnscope.semconv import MismatchEvidence, Status, Suspicion
from turnscope_app import text

Turn = dict[str, Any]
READS: Final = (
    "status",
    "suspicions",
    "mismatch_evidence",
    "suspect_tokens",
    "prompt_tokens",
    "local_hit_tokens",
    "fetched_tokens",
    "handoff_tokens",
    "decode_computed_tokens",
    "diverged_after",
)
"""Columns of turns that it takes."""
READER: Final = "the server that reads prompts (prefill engine)"
WRITER: Final = "the server that writes answers (decode engine)"


def proof(turn: Turn) -> str:
    """Whether it is proven or suspected, and by what; of the answer itself nobody knows."""
    match turn["mismatch_evidence"]:
        case MismatchEvidence.DIGESTS:
            return (
                "Proven: the prompt's text is not the one that the memory was made of (digests of the tokens differ). "
                "Whether that changed the answer is not known."
            )
        case MismatchEvidence.LENGTHS:
            return "Suspected: the prompt is shorter than what was kept for it, so it cannot be the same text."
        case MismatchEvidence.INFERRED:
            return (
                "Suspected (inferred): an earlier turn had put memory of another text where this one took its own from."
            )
    return "Suspected: the order of events allows it. Nobody has compared the answer."


def memory(turn: Turn) -> str:
    """Whose memory is meant and how many tokens of it; empty where it is not about memory of another text."""
    if Suspicion.KV_MISMATCH not in (turn["suspicions"] or []):
        return ""
    suspect = turn["suspect_tokens"]
    if suspect:
        sources = [
            said
            for name, said in (
                ("local_hit_tokens", f"the own memory of {READER}"),
                ("fetched_tokens", f"what was fetched back from {WRITER}"),
            )
            if turn[name]
        ]
        return f"It is about up to {suspect:,} of the prompt's tokens, in {' and '.join(sources) or 'what was reused'}."
    own, good = had_by_writer(turn), turn["diverged_after"] or 0
    if own is None or own <= good:
        return "Which memory it is about was not measured."
    computed = "The prompt was read anew, but " if not (turn["local_hit_tokens"] or turn["fetched_tokens"]) else ""
    begin = f"{computed}{WRITER}"
    return (
        f"{begin[0].upper()}{begin[1:]} took the prompt's first {own:,} tokens from its own memory. Up to "
        f"{own - good:,} of them, from position {good:,} on, may be of another text that an earlier turn had put there."
    )


def in_short(turns: Sequence[Turn]) -> str:
    """How many of a session's answers are in doubt, how sure that is, and how many a client was given. Markdown."""
    doubted = [turn for turn in turns if turn["suspicions"]]
    proven = sum(turn["mismatch_evidence"] == MismatchEvidence.DIGESTS for turn in doubted)
    given = sum(answered(turn) for turn in doubted)
    sure = f"proven for {proven:,}, suspected for {len(doubted) - proven:,}"
    return (
        f"**{text.turns(len(doubted))} may have a wrong answer**, although the model server reported success: it may "
        f"rest on another text's memory ({sure}). {given:,} of these answers were given to the client in full."
    )


def had_by_writer(turn: Turn) -> int | None:
    """Prompt tokens that the decode engine neither read from the prefill engine nor computed: it had them itself."""
    prompt, read, computed = (turn[name] for name in ("prompt_tokens", "handoff_tokens", "decode_computed_tokens"))
    return None if prompt is None or read is None else max(0, prompt - read - (computed or 0))


def answered(turn: Turn) -> bool:
    """Whether a client was given the whole answer."""
    return bool(turn["status"] == Status.OK)
