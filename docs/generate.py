"""Write the generated files: pages, rules, dashboards. With ``--check`` say which is out of date and exit 1."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import alerts.build
import dashboards.build
from docs.pages import alerts as of_alerts
from docs.pages import commands, events, importers, metrics, reasons, settings, traces
from docs.pages import dashboards as of_dashboards
from turnscope.catalog import METRICS

ROOT: Final = Path(__file__).resolve().parent.parent


def pages() -> dict[str, str]:
    """Path in the repository to content of every generated file."""
    boards = dict(dashboards.build.files())
    return {
        "docs/metrics.md": metrics.page(METRICS),
        "docs/reasons.md": reasons.page(),
        "docs/events.md": events.page(),
        "docs/settings.md": settings.page(),
        "docs/commands.md": commands.page(),
        "docs/importers.md": importers.page(),
        "docs/alerts.md": of_alerts.page(),
        "alerts/rules.yml": alerts.build.rules(),
        "docs/dashboards.md": of_dashboards.page(boards),
        "docs/traces.md": traces.page(),
        **{f"dashboards/{name}": content for name, content in boards.items()},
    }


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Write the files; with ``--check`` only compare them with what is there."""
    stale = []
    for name, content in pages().items():
        path = root / name
        if path.exists() and path.read_text() == content:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
    if stale and "--check" in arguments:
        print(f"out of date: {', '.join(stale)}: run 'make generate' and commit the result", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
