"""How people are told things: advice in the same words wherever it is given, counts, and values as they are shown."""

from __future__ import annotations

from typing import Final

SESSION_ADVICE: Final = (
    "Let clients send the header X-Session-ID with every request of a session, or conversation_id in the body where "
    "proxy and engines accept it."
)
"""For turns without a session id. Strict front ends refuse a body field that they do not know."""


INSTALL_HOOK: Final = "pip install . (in a clone of turnscope)"
INSTALL_ALL: Final = "pip install '.[all]' (in a clone of turnscope)"
"""From the source tree: a package index may hold somebody else's package of that name."""


def plural(number: int, noun: str, several: str | None = None) -> str:
    """``1 turn``, ``1,200 turns``; ``several`` where an s does not make it, or where a verb goes along:
    ``plural(n, "turn is stuck", "turns are stuck")``."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def shown(value: str, *, most: int = 80) -> str:
    """A value that somebody gave, for a sentence: in quotes, with what cannot be printed spelled out, and cut."""
    cut = value if len(value) <= most else value[: most // 2]
    return repr(cut) if cut == value else f"{cut + '...'!r} ({len(value)} characters)"
