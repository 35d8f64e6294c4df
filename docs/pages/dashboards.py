"""The page about dashboards: what is on each, read from its JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from docs.pages.markdown import HEAD, table


def page(files: dict[str, str]) -> str:
    """What is on each dashboard, read from its JSON."""
    out = [
        f"{HEAD}# Dashboards\n\n"
        "For Grafana 11 and newer, in `dashboards/`, made by `dashboards/build.py`. Import the files, or provision "
        "them ([deploy](../deploy/README.md)); `turnscope assets DIR` writes them out of an installed package. "
        "Each has variables for the Prometheus data source, the deployment (a scrape job) and the engine, and for "
        "the addresses of the explorer and of the runbooks, which its links lead to. A figure, a bar and a table "
        "show the time chosen as a whole, or its end; curves show its course. Where nothing was measured a panel "
        "says so: absent is not 0.\n\n"
        "The tables below are read from the JSON: what a panel is called, what it says of itself, and which "
        "metrics it draws.\n"
    ]
    for name, content in files.items():
        board = json.loads(content)
        out.append(f"\n## {board['title'].removeprefix('turnscope: ')}\n\n{board['description']} `{name}`\n")
        rows: list[tuple[str, ...]] = []
        for panel in [*board["panels"], None]:
            if panel is not None and panel["type"] != "row":
                rows.append(_panel_row(panel))
                continue
            if rows:
                out.append("\n" + table(("panel", "shown as", "unit", "what it says", "metrics"), rows))
                rows = []
            if panel is not None:
                out.append(f"\n### {panel['title']}\n")
    return "".join(out)


def _panel_row(panel: dict[str, Any]) -> tuple[str, ...]:
    found = re.findall(r"\b(?:turnscope_\w+|up(?={))", " ".join(target["expr"] for target in panel["targets"]))
    metrics = dict.fromkeys(re.sub(r"_(bucket|sum|count)$", "", name) for name in found)
    unit = panel.get("fieldConfig", {}).get("defaults", {}).get("unit", "none").removeprefix("count:")
    return panel["title"], panel["type"], unit, panel["description"], ", ".join(f"`{name}`" for name in metrics)
