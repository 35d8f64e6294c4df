"""What colour stands for what: one colour has one meaning, on every page and in the report.

With at least 3:1 against the light and the dark ground, and colours that stand in one chart stay apart for people who
confuse red and green, or blue and yellow. A test measures both, and that no colour is named anywhere else.
"""

from __future__ import annotations

from typing import Final

from turnscope.semconv import Detail, Part, Path, TokenSource
from turnscope.store.fates import Fate

READING: Final = "#3a57ea"
"""A prompt is read: computed, and all of the time until the first word."""
WRITING: Final = "#25a76d"
"""An answer is written."""
TOOLS: Final = "#d56c0a"
"""Tools run."""
PROGRAM: Final = "#b876f5"
"""The agent's own program works."""
PERSON: Final = "#8a5f3d"
"""A person is waited for."""
FETCHED: Final = "#a18e07"
"""Memory that was kept is read back."""
OWN: Final = "#6b8eeb"
"""The reader of prompts had it in its own memory."""
PARTLY: Final = "#4e6f07"
"""It had a part, and read another back."""
STORE: Final = "#9540b1"
"""Memory comes from a separate store."""
HANDED_OVER: Final = "#e653cf"
"""Memory goes on from the reader of prompts to the writer of answers."""
WAITING: Final = "#bf23b9"
"""Something waits for its turn: a request in a queue, memory that nobody has come for yet."""
TROUBLE: Final = "#ca1905"
"""What should not have been: computed again, missed, lost, in doubt."""
REST: Final = "#65667e"
"""The whole of something, limits, and what has no colour of its own."""
UNKNOWN: Final = "#7e7f8d"
"""Nothing tells."""

PARTS: Final = {
    Part.INPUT_PROCESSING: READING,
    Part.GENERATION: WRITING,
    Part.TOOL_WAIT: TOOLS,
    Part.APPLICATION_WORK: PROGRAM,
    Part.USER_WAIT: PERSON,
    Part.UNKNOWN: UNKNOWN,
}
"""What a session's time was spent on."""
INPUT: Final = {
    Detail.PROXY: REST,
    Detail.QUEUE: WAITING,
    Detail.REVERSE_FETCH: FETCHED,
    Detail.PREFILL: READING,
    Detail.HANDOFF: HANDED_OVER,
    Detail.FIRST_STEP: WRITING,
    Detail.UNATTRIBUTED: UNKNOWN,
}
"""What the time until the first word was made of."""
SOURCES: Final = {
    TokenSource.LOCAL_HIT: OWN,
    TokenSource.FETCHED: FETCHED,
    TokenSource.EXTERNAL: STORE,
    TokenSource.RECOMPUTED: TROUBLE,
    TokenSource.NEW: READING,
    TokenSource.COMPUTED: UNKNOWN,
}
"""Where prompt tokens came from."""
PATHS: Final = {
    Path.REVERSE_FETCH: FETCHED,
    Path.MIXED: PARTLY,
    Path.LOCAL_HIT: OWN,
    Path.EXTERNAL_HIT: STORE,
    Path.RECOMPUTE: READING,
    Path.UNKNOWN: UNKNOWN,
}
"""How a prompt was come by, in the order in which it is stacked."""
FATES: Final = {
    Fate.READ: FETCHED,
    Fate.NOTIFIED: OWN,
    Fate.HELD: WAITING,
    Fate.NOT_CONTINUED: REST,
    Fate.NO_SESSION: REST,
    Fate.TTL: REST,
    Fate.TOO_LATE: TROUBLE,
    Fate.NOT_ASKED: TROUBLE,
    Fate.LEASE: TROUBLE,
    Fate.HOLDER_LOST: TROUBLE,
    Fate.ABORTED: TROUBLE,
    Fate.UNKNOWN: UNKNOWN,
}
"""What became of kept memory: those of one colour are one thing in a chart (``words.ENDS``)."""
