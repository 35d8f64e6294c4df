"""docs/reasons.md."""

from __future__ import annotations

from enum import Enum
from typing import Any, get_args, get_type_hints

import msgspec

from docs.pages.markdown import HEAD, field_docs, table
from turnscope.assembly import knowledge
from turnscope.assembly.reasons import TABLE


def page() -> str:
    """The table that decides every turn's reason, in the order in which it is asked."""
    rows = []
    for number, row in enumerate(TABLE, 1):
        asked = ", ".join(f"{field} = {' or '.join(map(_value, values))}" for field, values in row.asks.items())
        part = "" if row.of is knowledge.Evidence else row.of.__name__
        rows.append((str(number), f"`{row.reason}`", row.says, ": ".join(filter(None, (part, asked)))))
    out = [
        f"{HEAD}# Reasons\n\n"
        "Why a turn had no (more) reverse fetch, from `exporter/turnscope/assembly/reasons.py`. The first row whose "
        "question the evidence answers decides; the last one asks nothing. A test asks the table about everything that "
        "evidence can say.\n\n",
        table(("", "reason", "when", "asks the evidence for"), rows),
        "\n## What the evidence can say\n\n`none`: nothing tells.\n",
    ]
    docs = field_docs(knowledge)
    for struct in (knowledge.Evidence, knowledge.Given, knowledge.Spent, knowledge.Missing, knowledge.Previous):
        hints = get_type_hints(struct)
        fields = [
            (f"`{field.name}`", _values(hints[field.name]), docs[struct.__name__].get(field.name, ""))
            for field in msgspec.structs.fields(struct)
        ]
        out.append(f"\n### {struct.__name__}\n\n{' '.join((struct.__doc__ or '').split())}\n")
        if fields:
            out.append("\n" + table(("field", "values", "what"), fields))
    return "".join(out)


def _value(value: object) -> str:
    return "none" if value is None else {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _values(hint: Any) -> str:
    """What a field can be, in words."""
    if hint is type(None):
        return "none"
    if hint is bool:
        return "yes, no"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return ", ".join(map(str, hint))
    return ", ".join(map(_values, get_args(hint))) or str(hint.__name__)
