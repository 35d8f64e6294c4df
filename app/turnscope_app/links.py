"""Links to other tools, made of templates that whoever starts the explorer gives."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlsplit

TRACE_ID: Final = "{trace_id}"


def checked(template: str, place: str = TRACE_ID) -> str:
    """The template as it is. Raises ValueError, which says what is wrong, unless it is an http(s) address with
    ``place`` behind its host."""
    if not template.isprintable() or any(c in template for c in " <>\"'`\\"):
        raise ValueError("it has characters that no address has")
    try:
        parts = urlsplit(template)
        host = parts.hostname
    except ValueError as error:
        raise ValueError("it is not an address") from error
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("it is not an address that begins with http:// or https://")
    if place not in f"{parts.path}?{parts.query}#{parts.fragment}" or place in parts.netloc:
        raise ValueError(f"it has no {place} after the host, where the id is to stand")
    return template


def filled(template: str | None, value: str | None, place: str = TRACE_ID) -> str | None:
    """The address for one id, escaped; None without an id, or without a template that can be used."""
    if not template or not value:
        return None
    try:
        return checked(template, place).replace(place, quote(value, safe=""))
    except ValueError:
        return None
