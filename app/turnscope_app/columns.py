"""The columns of tables: heading, what it means, how its values are made of a row, and how they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from turnscope_app import text, words

Row = dict[str, Any]


class Kind(StrEnum):
    """How a value is written. Stores hold nanoseconds and bytes; tables show the unit of ``UNITS``."""

    TEXT = "text"
    WORD = "word of a closed vocabulary"
    WORDS = "words of a closed vocabulary"
    LIST = "list of text"
    COUNT = "count"
    TOKENS = "tokens"
    BYTES = "bytes"
    MS = "milliseconds"
    SECONDS = "seconds"
    TIME = "UTC time"
    SHARE = "percent"
    YES_NO = "yes or no"


UNITS: Final = {Kind.TOKENS: "tokens", Kind.BYTES: "bytes", Kind.MS: "ms", Kind.SECONDS: "s", Kind.TIME: "UTC"}


class Column(NamedTuple):
    """One column of a table, or one figure of a turn."""

    name: str
    """The row's field, unless ``value`` makes the value."""
    label: str
    help: str
    kind: Kind = Kind.TEXT
    width: int | None = None
    """Pixels; None lets the table choose."""
    vocabulary: Mapping[str, words.Word] = {}
    value: Callable[[Row], Any] | None = None
    absent: str = words.NOT_MEASURED
    """What a turn's figure says when there is none."""

    @property
    def key(self) -> str:
        """The frame's name for it."""
        return self.name.removesuffix("_ns")

    @property
    def heading(self) -> str:
        """The label with its unit."""
        return f"{self.label} ({UNITS[self.kind]})" if self.kind in UNITS else self.label

    def of(self, row: Row) -> Any:
        """Its value in a row of the store; None where there is none. Stores of older versions lack fields."""
        return self.value(row) if self.value else row.get(self.name)


def percent(part: int | None, whole: int | None) -> float | None:
    """``part`` of ``whole``, 0 to 100; None when either is not known or there is no whole."""
    return None if part is None or not whole else 100 * part / whole


def written(row: Row, column: Column) -> str:
    """A figure of a row in words, with its unit."""
    found = column.of(row)
    if found is None or found == []:
        return column.absent
    match column.kind:
        case Kind.TOKENS:
            return text.count(found, "tokens")
        case Kind.COUNT:
            return text.count(found)
        case Kind.BYTES:
            return text.size(found)
        case Kind.MS | Kind.SECONDS:
            return text.duration(found)
        case Kind.TIME:
            return text.when(found)
        case Kind.YES_NO:
            return "yes" if found else "no"
        case Kind.WORD:
            return text.worded(column.vocabulary, found) or column.absent
        case Kind.WORDS:
            return ", ".join(text.worded(column.vocabulary, one) or "" for one in found)
        case _:
            return text.harmless(str(found))


def _warnings(row: Row) -> str:
    parts = []
    if row["suspicious_turns"]:
        parts.append(f"⚠ {row['suspicious_turns']:,} possibly wrong")
    if row["failed_turns"]:
        parts.append(f"✕ {row['failed_turns']:,} not answered")
    return " · ".join(parts)


SESSIONS: Final = (
    Column(
        "session",
        "Session",
        "The conversation's id, as the client sent it (gen_ai.conversation.id).",
        value=lambda row: text.session(row["session_id"]),
    ),
    Column("last_ns", "Last activity", "When the session's newest turn ended.", Kind.TIME),
    Column("turns", "Turns", "How many model calls turnscope saw in this session.", Kind.COUNT),
    Column(
        "warnings",
        "Check",
        "Turns whose answer may be wrong, and turns that were not answered. Open the session.",
        width=130,
        value=_warnings,
    ),
    Column(
        "reused",
        "Reused",
        "Share of the prompt tokens that were not computed: already there, fetched back, or from another store.",
        Kind.SHARE,
        110,
        value=lambda row: percent(row["reused_tokens"], row["source_tokens"]),
    ),
    Column(
        "main_reason",
        "Most often in the way",
        "The most frequent obstacle to fetching back. First turns, prompts that the prefill worker still had and parts "
        "too small to fetch are none.",
        Kind.WORD,
        vocabulary=words.REASONS,
        value=lambda row: row["main_reason"] or words.NO_OBSTACLE,
    ),
    Column(
        "ttft_median_ns",
        "First token, median",
        "Half of the turns had their first content byte within this time, measured at the proxy.",
        Kind.MS,
    ),
    Column("prompt_tokens", "Prompt", "Prompt tokens of all its turns together.", Kind.TOKENS),
    Column("local_hit_tokens", "Already there", "Found in the prefill worker's own cache (local hit).", Kind.TOKENS),
    Column(
        "fetched_tokens",
        "Fetched back",
        "Read back from the decode worker that had kept them (reverse fetch).",
        Kind.TOKENS,
    ),
    Column("computed_tokens", "Computed", "Computed on the prefill worker, new text included.", Kind.TOKENS),
    Column(
        "recomputed_tokens",
        "Computed again",
        "Of those, known to have been computed in this session before: wasted work (recomputed). The About page says "
        "for how many turns it is measured.",
        Kind.TOKENS,
    ),
    Column("fetched_bytes", "Fetched back", "Data moved from decode to prefill workers.", Kind.BYTES),
    Column("models", "Model", "The models that served it.", Kind.LIST),
)


def _of_wall(name: str) -> Callable[[Row], float | None]:
    return lambda row: percent(row[name], row["wall_ns"])


APPLICATIONS: Final = (
    Column(
        "application",
        "Application",
        "As its spans name it, with its version (service.name).",
        value=lambda row: text.harmless(row["application"]),
    ),
    Column("sessions", "Sessions", "That ended in this period.", Kind.COUNT),
    Column(
        "working_median_ns",
        "Session without waits for people",
        "Half of its sessions worked no longer.",
        Kind.SECONDS,
    ),
    *(
        Column(
            f"{part}_share",
            word.plain,
            f"{word.story} Share of session time.",
            Kind.SHARE,
            130,
            value=_of_wall(f"{part}_ns"),
        )
        for part, word in words.PARTS.items()
    ),
    Column(
        "spared",
        "Saved by reuse at best",
        "How much shorter its sessions were, had what was computed again been fetched back (estimated).",
        Kind.SHARE,
        130,
        value=_of_wall("fetched_ns"),
    ),
    Column("suspicious_turns", "Possibly wrong", "Turns with evidence that reuse spoiled the answer.", Kind.COUNT),
    Column("failed_turns", "Not answered", "Turns that failed, were cancelled or are stuck.", Kind.COUNT),
)
