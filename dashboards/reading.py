"""The committed dashboards, read back: their panels, queries and variables."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
GRAFANAS = {"$__rate_interval": "5m", "$__range": "1h", "$deployment": ".*", "$engine": ".*"}
"""What Grafana puts in place of its variables: here, everything of an hour."""


@dataclass(frozen=True)
class Target:
    """One query of a panel."""

    board: str
    panel: dict[str, Any]
    raw: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.board}, {self.panel['title']}, {self.raw['refId']}"

    @property
    def expr(self) -> str:
        """As Prometheus is asked."""
        return self.filled()

    def filled(self, **others: str) -> str:
        """The same, with ``others`` in the place of Grafana's variables of these names."""
        return filled(self.raw["expr"], **others)

    @property
    def instant(self) -> bool:
        """Of one moment."""
        return bool(self.raw.get("instant"))


def filled(expression: str, **others: str) -> str:
    """With Grafana's variables replaced."""
    for name, value in sorted({**GRAFANAS, **others}.items(), reverse=True):
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


def boards() -> dict[str, dict[str, Any]]:
    """File name to dashboard."""
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels() -> list[tuple[str, dict[str, Any]]]:
    """Every panel that shows something."""
    return [(name, p) for name, board in boards().items() for p in board["panels"] if p["type"] != "row"]


def targets() -> list[Target]:
    """Every query of every panel."""
    return [Target(name, panel, raw) for name, panel in panels() for raw in panel["targets"]]


@dataclass(frozen=True)
class Variable:
    """``label_values(selector, label)`` of a dashboard."""

    board: str
    name: str
    selector: str
    label: str


def variables() -> list[Variable]:
    """Every variable that asks Prometheus."""
    found = []
    for name, board in boards().items():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
                assert asked, variable["query"]
                found.append(Variable(name, variable["name"], filled(asked[1]), asked[2]))
    return found
