"""Every group of rules, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from alerts.answers import ANSWERS
from alerts.latency import LATENCY
from alerts.recording import RATIOS
from alerts.retention import RETENTION
from alerts.reuse import REUSE
from alerts.rule import Alert, Group, Recording
from alerts.transfers import TRANSFERS
from alerts.watching import WATCHING

GROUPS: Final[tuple[Group, ...]] = (RATIOS, ANSWERS, REUSE, TRANSFERS, RETENTION, LATENCY, WATCHING)


def alerts() -> Iterator[Alert]:
    """Every alerting rule, in order."""
    return (rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert))


def recordings() -> Iterator[Recording]:
    """Every recording rule, in order."""
    return (rule for group in GROUPS for rule in group.rules if isinstance(rule, Recording))
