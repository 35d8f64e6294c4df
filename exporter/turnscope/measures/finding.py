"""What a check says."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """From worst to least."""

    ERROR = "error"
    """Something that is measured is missing or wrong, or turns fail."""
    WARNING = "warning"
    """Reuse is lost, or figures are incomplete."""
    NOTE = "note"
    """Worth knowing; may be meant so."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to know, with what to do about it."""

    severity: Severity
    check: str
    """The name of the check, stable, for scripts."""
    where: str
    what: str
    fix: str
