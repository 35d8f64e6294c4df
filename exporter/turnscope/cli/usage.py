"""How a command is called, in the first line of its help."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class PlainUsage(TyperCommand):
    """Arguments that must be given stand as ``KIND FILE...``, without typer's braces."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """As of ``TyperCommand``."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]
