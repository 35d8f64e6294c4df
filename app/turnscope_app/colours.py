"""What colour stands for what, the same on every page. Hues that stay apart for people who confuse red and green, with
at least 3:1 against Streamlit's light and dark grounds."""

from __future__ import annotations

from typing import Final

from turnscope.semconv import Part, TokenSource
from turnscope.store.fates import Fate

BLUE: Final = "#3b87d8"
TEAL: Final = "#0f9d8f"
VIOLET: Final = "#8d6bc9"
AMBER: Final = "#bd8210"
RED: Final = "#df5a3c"
BROWN: Final = "#a8733a"
PINK: Final = "#c2579a"
GREY: Final = "#7d848c"
SLATE: Final = "#6b7280"

PARTS: Final = {
    Part.INPUT_PROCESSING: BLUE,
    Part.GENERATION: TEAL,
    Part.TOOL_WAIT: AMBER,
    Part.APPLICATION_WORK: VIOLET,
    Part.USER_WAIT: BROWN,
    Part.UNKNOWN: GREY,
}
"""What a session's time was spent on."""
SOURCES: Final = {
    TokenSource.LOCAL_HIT: BLUE,
    TokenSource.FETCHED: TEAL,
    TokenSource.EXTERNAL: VIOLET,
    TokenSource.NEW: AMBER,
    TokenSource.RECOMPUTED: RED,
    TokenSource.COMPUTED: BROWN,
}
"""Where prompt tokens came from."""
FATES: Final = {
    Fate.READ: TEAL,
    Fate.NOTIFIED: BLUE,
    Fate.HELD: AMBER,
    Fate.NOT_CONTINUED: PINK,
    Fate.NO_SESSION: PINK,
    Fate.TOO_LATE: RED,
    Fate.NOT_ASKED: VIOLET,
}
"""What became of kept blocks; others are ``SLATE``."""
