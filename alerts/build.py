"""``rules.yml`` from the declarations. ``docs/generate.py`` writes it and checks that it is up to date."""

from __future__ import annotations

from typing import Any, Final

import yaml

from alerts.groups import GROUPS, alerts, recordings
from alerts.rule import Alert, Recording

__all__ = ["GROUPS", "Alert", "Recording", "alerts", "recordings", "rules"]

_HEAD: Final = "# Generated from alerts/*.py by docs/generate.py (make generate): do not edit.\n"


class _Text(str):
    """Written as a block, line by line."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(_Text, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|"))


def rules() -> str:
    """The rule file as Prometheus reads it."""
    groups = [{"name": group.name, "rules": [_rule(rule) for rule in group.rules]} for group in GROUPS]
    return _HEAD + yaml.dump({"groups": groups}, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


def _rule(rule: Recording | Alert) -> dict[str, Any]:
    expr = _Text(rule.expr + "\n") if "\n" in rule.expr else rule.expr
    if isinstance(rule, Recording):
        return {"record": rule.record, "expr": expr}
    return {
        "alert": rule.name,
        "expr": expr,
        **({"for": rule.wait} if rule.wait != "0s" else {}),
        "labels": {"severity": rule.severity, **rule.labels},
        "annotations": {
            "summary": rule.summary,
            "description": rule.description,
            "runbook_url": rule.runbook_url,
        },
    }
