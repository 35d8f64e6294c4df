"""Patches servers and clients when the application imports them. Imports neither them nor anything heavy itself."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Final

from turnscope.emit.after_import import after_import

HTTPX_LIKE: Final = ("httpx", "httpx2")


def install() -> None:
    """For an unchanged application: every Starlette or FastAPI application, and every HTTP client."""
    after_import("starlette.applications", _patch_starlette)
    install_clients()


def install_clients() -> None:
    """Every HTTP client we know."""
    for name in HTTPX_LIKE:
        after_import(name, _patch_httpx)
    after_import("aiohttp", _patch_aiohttp)


def _patch_starlette(module: ModuleType) -> None:
    from turnscope.proxy.process import WRAPPED, current
    from turnscope.proxy.server import serve

    starlette: Any = module.Starlette
    original = starlette.__call__
    if hasattr(original, "turnscope"):
        return

    @functools.wraps(original)
    async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
        process = current()
        if process is None:
            await original(self, scope, receive, send)
        else:
            await serve(self, functools.partial(original, self), scope, receive, send, process)

    call.turnscope = True  # type: ignore[attr-defined]
    starlette.__call__ = call
    WRAPPED.append("starlette")


def _patch_httpx(module: ModuleType) -> None:
    from turnscope.proxy.httpx_client import patch
    from turnscope.proxy.process import WRAPPED

    if patch(module):
        WRAPPED.append(module.__name__)


def _patch_aiohttp(module: ModuleType) -> None:
    from turnscope.proxy.aiohttp_client import patch
    from turnscope.proxy.process import WRAPPED

    if patch(module):
        WRAPPED.append(module.__name__)
