"""The hook as one line in an application: ``app.add_middleware(turnscope.proxy.Middleware)``."""

from __future__ import annotations

from turnscope.proxy.install import install_clients
from turnscope.proxy.process import current
from turnscope.proxy.server import App, Receive, Scope, Send, serve


class Middleware:
    """Pure ASGI. Watches the application inside it and the HTTP clients of the process; without
    ``TURNSCOPE_ENDPOINT`` it hands everything through. Harmless under ``turnscope run``."""

    def __init__(self, app: App) -> None:
        self.app = app
        install_clients()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        process = current()
        if process is None:
            await self.app(scope, receive, send)
        else:
            await serve(self.app, self.app, scope, receive, send, process)
