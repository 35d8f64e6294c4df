"""One session as an HTML file that needs nothing else: no network, no script."""

from __future__ import annotations

from turnscope_app.report.build import build, file_name

__all__ = ["build", "file_name"]
