"""What applications have opted in to: a label for their sessions, and a link to each in a trace tool of their own.

Whoever starts the explorer gives a template an application, in which ``{session}`` stands for the session's id.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Final

from turnscope_app import links

"""Set by ``turnscope explore``: a JSON object of templates by application."""
SESSION: Final = "{session}"


def templates(variable: str) -> dict[str, str]:
    """By application; none where nobody opted in."""
    found: dict[str, str] = json.loads(os.environ.get(variable) or "{}")
    return found


def label(by_application: Mapping[str, str], applications: Iterable[str], session_id: str | None) -> str | None:
    """What the session's application calls it; foreign text still, to be made harmless where it is shown."""
    template = _of(by_application, applications)
    return None if template is None or not session_id else template.replace(SESSION, session_id)


def link(by_application: Mapping[str, str], applications: Iterable[str], session_id: str | None) -> str | None:
    """The session's address in its application's trace tool: https alone, the id escaped."""
    template = _of(by_application, applications)
    return links.filled(template, session_id, SESSION) if template and https(template) else None


def https(template: str) -> bool:
    """Whether it begins as an address that nobody on the way can read or change."""
    return template.startswith("https://")


def _of(by_application: Mapping[str, str], applications: Iterable[str]) -> str | None:
    """An application's name is followed by its version, where that is known."""
    for application in applications:
        for name in (application, application.rpartition(" ")[0]):
            if name in by_application:
                return by_application[name]
    return None
