"""The request being served where this code runs. Light on purpose: every patched client looks here first."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from turnscope.proxy.live import LiveTurn

CURRENT: Final[ContextVar[LiveTurn | None]] = ContextVar("turnscope_turn", default=None)
