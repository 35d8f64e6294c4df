"""What a session's prompts were made of: its turns' tokens added up, and what stood in the way of reuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from turnscope.model import Turn
from turnscope.semconv import NO_OBSTACLE, Reason, Status

_SUMMED: Final = (
    "prompt_tokens",
    "local_hit_tokens",
    "fetched_tokens",
    "external_tokens",
    "computed_tokens",
    "recomputed_tokens",
    "output_tokens",
    "fetched_bytes",
)


def reuse(turns: Sequence[Turn]) -> dict[str, Any]:
    """The fields of a session's summary that tell of its turns' prompts. A sum is None when no turn measured it."""
    told = [(turn.prompt_tokens, reused) for turn in turns if (reused := reused_tokens(turn)) is not None]
    return {
        **{name: _sum(getattr(turn, name) for turn in turns) for name in _SUMMED},
        "source_tokens": _sum(prompt for prompt, _ in told),
        "reused_tokens": _sum(reused for _, reused in told),
        "failed_turns": sum(turn.status != Status.OK for turn in turns),
        "engines": _names(name for turn in turns for name in (turn.prefill_engine, turn.decode_engine)),
        "paths": _names(turn.path for turn in turns),
        "reasons": _names(turn.reason for turn in turns),
        "suspicions": _names(name for turn in turns for name in turn.suspicions),
        "main_reason": main_reason(turns),
    }


def reused_tokens(turn: Turn) -> int | None:
    """Prompt tokens that were not computed; None unless every source is known."""
    sources = (turn.local_hit_tokens, turn.fetched_tokens, turn.external_tokens)
    return None if None in sources else sum(tokens or 0 for tokens in sources)


def main_reason(turns: Sequence[Turn]) -> str | None:
    """The most frequent obstacle, the earlier of equal ones; ``unknown`` where no other is known; None without any."""
    ordered = sorted(turns, key=lambda turn: (turn.started_ns, turn.turn_id))
    found = Counter(turn.reason for turn in ordered if turn.reason not in (*NO_OBSTACLE, Reason.UNKNOWN))
    if found:
        return found.most_common(1)[0][0]
    return Reason.UNKNOWN if any(turn.reason == Reason.UNKNOWN for turn in turns) else None


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _names(values: Iterable[str | None]) -> list[str]:
    return sorted({value for value in values if value})
