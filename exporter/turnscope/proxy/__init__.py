"""The proxy hook: ``turnscope run proxy.py``, or ``app.add_middleware(turnscope.proxy.Middleware)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnscope.proxy.middleware import Middleware

__all__ = ["Middleware"]


def __getattr__(name: str) -> Any:
    # On demand: every Python process below ``turnscope run`` passes through here, and few are proxies.
    if name == "Middleware":
        from turnscope.proxy.middleware import Middleware

        return Middleware
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
