"""Units that more than one room converts with."""

from __future__ import annotations

from typing import Final

SECOND_NS: Final = 1_000_000_000
