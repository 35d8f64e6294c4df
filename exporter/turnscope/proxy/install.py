"""Patches servers and clients when the application imports them. Imports neither them nor anything heavy itself."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Final

from turnscope.emit.after_import import after_import

ASGI: Final = {"starlette.applications": "Starlette", "quart.app": "Quart"}
"""Module to the class of its applications; FastAPI's are Starlette's."""
HTTPX_LIKE: Final = ("httpx", "httpx2")


def install() -> None:
    """For an unchanged application: every application of a known framework, and every HTTP client."""
    for name, kind in ASGI.items():
        after_import(name, functools.partial(_patch_asgi, kind))
    install_clients()


def install_clients() -> None:
    """Every HTTP client we know."""
    for name in HTTPX_LIKE:
        after_import(name, _patch_httpx)
    after_import("aiohttp", _patch_aiohttp)


def _patch_asgi(kind: str, module: ModuleType) -> None:
    from turnscope.proxy.process import WRAPPED, current
    from turnscope.proxy.server import serve

    application: Any = getattr(module, kind)
    original = application.__call__
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
    application.__call__ = call
    WRAPPED.append(kind.lower())


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
