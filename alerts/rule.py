"""What a rule is, and the pieces of text that alerts share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from turnscope.shipped import RUNBOOKS

PAGE: Final = "page"
"""Somebody is woken: answers may be wrong, or turns stand still for ever."""
TICKET: Final = "ticket"
"""Somebody looks at it in working hours."""

COUNT: Final = '{{ $value | printf "%.0f" }}'
"""``increase()`` extrapolates: its value is shown without the fraction."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A ratio that people quote. Its name is ``level:metric:operations``; absent where its denominator is 0."""

    record: str
    expr: str
    says: str
    """What it is, for the page of rules."""


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One alerting rule. Several may share a name (and so a runbook) when ``labels`` tell their causes apart."""

    name: str
    severity: str
    expr: str
    wait: str
    """Its ``for``: how long the expression must hold. ``0s``: fires at once."""
    wait_reason: str
    summary: str
    """One line: how much of what, and where."""
    description: str
    """What it means, and what comes of it if nobody acts."""
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def runbook_url(self) -> str:
        """Derived from the name, so that none can be forgotten."""
        return f"{RUNBOOKS}{self.name}.md"


@dataclass(frozen=True, kw_only=True)
class Group:
    """Rules that are evaluated together, in order."""

    name: str
    title: str
    rules: tuple[Recording | Alert, ...]


def engines(metric: str) -> str:
    """Template: names of the engines whose counter grew within the hour, where the alert itself has none."""
    query = f"increase({metric}{{job=%q,instance=%q}}[1h]) > 0"
    return (
        f'{{{{ range $i, $found := query (printf "{query}" $labels.job $labels.instance) }}}}'
        "{{ if $i }}, {{ end }}{{ $found.Labels.engine }}{{ else }}no engine that metrics name{{ end }}"
    )
