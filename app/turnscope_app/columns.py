"""The columns of tables: heading, what it means, how its values are made of a row, and how they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from turnscope.semconv import Part
from turnscope_app import colours, text, words

Row = dict[str, Any]


class Kind(StrEnum):
    """How a value is written. Stores hold nanoseconds and bytes; tables show the unit of ``UNITS``."""

    TEXT = "text"
    WORD = "word of a closed vocabulary"
    WORDS = "words of a closed vocabulary"
    LIST = "list of text"
    COUNT = "count"
    NUMBER = "number without a unit"
    AMOUNT = "amount, which may be small"
    TOKENS = "tokens"
    BYTES = "bytes"
    MS = "milliseconds"
    SECONDS = "seconds"
    TIME = "UTC time"
    SHARE = "percent"
    YES_NO = "yes or no"
    LINK = "address"


UNITS: Final = {Kind.TOKENS: "tokens", Kind.BYTES: "bytes", Kind.MS: "ms", Kind.SECONDS: "s", Kind.TIME: "UTC"}


_BAR: Final = 110
"""Pixels of a bar at least."""


class Column(NamedTuple):
    """One column of a table, or one figure of a turn."""

    name: str
    """The row's field, unless ``value`` makes the value."""
    label: str
    help: str
    kind: Kind = Kind.TEXT
    width: int | None = None
    """Pixels, where neither the heading nor the values say it."""
    vocabulary: Mapping[str, words.Word] = {}
    value: Callable[[Row], Any] | None = None
    colour: str | None = None
    """Of a bar, where what it is of has one."""
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

    @property
    def pixels(self) -> int | None:
        """Its width; None lets the table choose. A bar is as wide as it is given: as its heading."""
        if self.width is None and self.kind is Kind.SHARE:
            return max(_BAR, 46 + 7 * len(self.heading))
        return self.width

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
    tools = (row.get("errors") or 0) - row["failed_turns"]
    if tools > 0:
        parts.append(f"✕ {tools:,} tools failed")
    if row.get("too_large"):
        parts.append("too large to be taken apart")
    return " · ".join(parts)


def _of_wall(name: str) -> Callable[[Row], float | None]:
    return lambda row: percent(row.get(name), row.get("wall_ns"))


def _of_work(name: str) -> Callable[[Row], float | None]:
    """Of the time in which nobody waited for a person."""
    return lambda row: percent(row.get(name), (row.get("wall_ns") or 0) - (row.get("user_wait_ns") or 0))


def _names(field: str) -> Callable[[Row], list[str]]:
    return lambda row: [text.harmless(name, 60) for name in row.get(field) or []]


def _most(row: Row) -> str | None:
    """The part that most of its working time was spent on, and its share of that."""
    if row.get("too_large"):
        return None
    parts = {part: row.get(f"{part}_ns") or 0 for part in words.PARTS if part != Part.USER_WAIT}
    part = max(parts, key=lambda name: parts[name])
    return f"{words.PARTS[part].plain}, {text.share(parts[part], sum(parts.values()))}" if parts[part] else None


_PARTS: Final = tuple(
    Column(
        f"{part}_share",
        word.plain,
        f"{word.story} Share of session time ({word.term}).",
        Kind.SHARE,
        value=_of_wall(f"{part}_ns"),
        colour=colours.PARTS[Part(part)],
    )
    for part, word in words.PARTS.items()
)
SESSIONS: Final = (
    Column(
        "applications",
        "Application",
        "As its spans name it, with its version.",
        Kind.LIST,
        width=135,
        value=_names("applications"),
    ),
    Column("agents", "Agent", "The agents that took part.", Kind.LIST, width=105, value=_names("agents")),
    Column(
        "session",
        "Session",
        "The conversation's id, as the client sent it (gen_ai.conversation.id).",
        width=200,
        value=lambda row: text.session(row["session_id"]),
    ),
    Column("ended_ns", "Last activity", "When the last thing known of it ended.", Kind.TIME),
    Column(
        "warnings",
        "Check",
        "Turns whose answer may be wrong, turns that were not answered, and whether it is too large to be taken apart. "
        "Open the session.",
        width=250,
        value=_warnings,
    ),
    Column(
        "wall_ns", "Lasted", "From the first thing known of it to the last, waits for people included.", Kind.SECONDS
    ),
    Column(
        "working_ns",
        "Worked",
        "Its time without the waits for people: nothing but people makes those shorter.",
        Kind.SECONDS,
        value=lambda row: None if row.get("wall_ns") is None else row["wall_ns"] - (row.get("user_wait_ns") or 0),
    ),
    Column(
        "most",
        "Most of its work",
        "What most of its time was spent on, waits for a person left out, and the share of its time without them.",
        width=210,
        value=_most,
    ),
    Column("turns", "Turns", "How many model calls turnscope saw in this session.", Kind.COUNT),
    *_PARTS,
    Column(
        "inferred",
        "Inferred",
        "Share of its time that is told by what came before and after it, and not measured.",
        Kind.SHARE,
        value=_of_wall("inferred_ns"),
    ),
    Column(
        "spared",
        "Reuse would save, about",
        "Had all that was computed again been fetched back: share of its working time, waits for people left out "
        "(estimated).",
        Kind.SHARE,
        value=_of_work("spared_ns"),
    ),
    Column(
        "reused",
        "Reused",
        "Share of the prompt tokens that were not computed: found in the server's own memory, fetched back, or from "
        "another store.",
        Kind.SHARE,
        value=lambda row: percent(row["reused_tokens"], row["source_tokens"]),
    ),
    Column(
        "main_reason",
        "Most often in the way",
        "The most frequent obstacle to fetching back. First turns, prompts that their reader (prefill engine) still "
        "had and parts "
        "too small to fetch are none.",
        Kind.WORD,
        vocabulary=words.REASONS,
        value=lambda row: row["main_reason"] or (None if row.get("too_large") else words.NOTHING),
    ),
    Column(
        "task_latency_median_ns",
        "Whole task, median",
        "Half of its completed tasks took no longer, from the user's message to the answer.",
        Kind.SECONDS,
    ),
    Column(
        "ttft_median_ns",
        "First token, median",
        "Half of the turns had their first content byte within this time, measured at the proxy.",
        Kind.MS,
    ),
    Column("prompt_tokens", "Prompt", "Prompt tokens of all its turns together.", Kind.TOKENS),
    Column(
        "local_hit_tokens",
        "Reused, own memory",
        "Found in the own memory of the server that reads prompts (local hit in the prefill engine's cache).",
        Kind.TOKENS,
    ),
    Column(
        "fetched_tokens",
        "Reused, fetched back",
        "Read back from the server that writes answers, which had kept them (reverse fetch from the decode engine).",
        Kind.TOKENS,
    ),
    Column(
        "computed_tokens",
        "Computed",
        "Computed by the server that reads prompts (prefill engine), new text included.",
        Kind.TOKENS,
    ),
    Column(
        "recomputed_tokens",
        "Computed again",
        "Of those, known to have been computed in this session before: wasted work (recomputed). The About page says "
        "for how many turns it is measured.",
        Kind.TOKENS,
    ),
    Column(
        "fetched_bytes",
        "Fetched back",
        "Data moved back to servers that read prompts (from decode to prefill engines).",
        Kind.BYTES,
    ),
    Column("models", "Model", "The models that served it.", Kind.LIST, value=_names("models")),
    Column(
        "deployments",
        "Deployment",
        "Where it ran, as its spans name it (deployment.environment.name).",
        Kind.LIST,
        value=_names("deployments"),
    ),
    Column(
        "engines",
        "Engines",
        "Servers that read its prompts and wrote its answers (prefill and decode engines).",
        Kind.LIST,
        value=_names("engines"),
    ),
)
OPTED: Final = (
    Column("label", "Called", "What its application calls it.", width=160, value=lambda row: _harmless(row["label"])),
    Column("link", "Trace", "The session in its application's own trace tool.", Kind.LINK, 80),
)
"""Columns of a list whose applications have opted in to them: fields that ``opted`` makes."""


def _harmless(foreign: str | None) -> str | None:
    return None if foreign is None else text.harmless(foreign)


WHO: Final = ("applications", "agents", "session")
"""Columns by which a session is known: they stay in view."""
NAMES: Final = ("applications", "agents", "deployments")
"""Columns that a list lacks where no session of the store has a value."""


def listed(names: Iterable[str], fields: Iterable[str]) -> list[Column]:
    """The columns of a list of sessions: who took part, then what was opted in to, then the rest. ``names`` are those
    of ``NAMES`` that any session has, ``fields`` those of the table."""
    known = [column for column in SESSIONS if column.name in names or column.name not in NAMES]
    who, rest = [c for c in known if c.name in WHO], [c for c in known if c.name not in WHO]
    return [*who, *(c for c in OPTED if c.name in fields), *rest]


TURN: Final = (
    Column("session", "Session", "Its id.", value=lambda row: text.session(row["session_id"])),
    Column("turn_index", "Turn", "Its number in the session.", Kind.COUNT, width=60),
    Column("started_ns", "Started", "When the request came in.", Kind.TIME),
)
"""Which turn it is, in a list of turns of all sessions."""
NAMELESS: Final = "not named"


def named(field: str) -> Callable[[Row], str]:
    """Foreign names, made harmless."""
    return lambda row: text.harmless(row[field]) if row[field] else NAMELESS


APPLICATION: Final = Column(
    "application",
    "Application",
    "As its spans name it, with its version (service.name).",
    value=named("application"),
)
APPLICATIONS: Final = (
    APPLICATION,
    Column("sessions", "Sessions", "That ended in this period.", Kind.COUNT),
    Column(
        "working_median_ns",
        "Session without waits for people",
        "Half of its sessions worked no longer.",
        Kind.SECONDS,
    ),
    *_PARTS,
    Column(
        "spared",
        "Reuse would save, about",
        "Had all that was computed again been fetched back: share of the agents' working time (estimated).",
        Kind.SHARE,
        value=_of_work("fetched_ns"),
    ),
    Column("suspicious_turns", "Possibly wrong", "Turns with evidence that reuse spoiled the answer.", Kind.COUNT),
    Column("failed_turns", "Not answered", "Turns that failed, were cancelled or are stuck.", Kind.COUNT),
)
