"""What people type, checked: one sentence for each way in which it can be wrong. All raise ``Sorry``."""

from __future__ import annotations

import math
from pathlib import Path
from urllib.parse import urlsplit

from turnscope.cli.errors import Sorry
from turnscope.config import readable, split_address
from turnscope.model import shown


def text(name: str, value: str) -> str:
    """Something that can be meant, and written down anywhere."""
    try:
        return readable(value)
    except ValueError as error:
        raise Sorry(f"{name}: {error}") from None


def file(name: str, value: str) -> Path:
    """The path of a file to read."""
    path = Path(text(name, value)).expanduser()
    try:
        if path.is_dir():
            raise Sorry(f"{name}: {path} is a folder: name a file in it")
        path.stat()
    except OSError as error:
        raise Sorry(f"{name}: {shown(value)} cannot be read ({error.strerror}): check the path") from None
    return path


def number(name: str, value: str, low: float, high: float) -> float:
    """A number from ``low`` to ``high``."""
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not low <= found <= high:
        raise Sorry(f"{name}: {shown(value)} is not a number from {low:g} to {high:g}")
    return found


def port(name: str, value: str) -> int:
    """A TCP port."""
    if not (value.isascii() and value.isdecimal() and len(value) <= 5 and 1 <= int(value) <= 65535):
        raise Sorry(f"{name}: {shown(value)} is not a port: it is a whole number from 1 to 65535")
    return int(value)


def otlp_address(name: str, value: str) -> str:
    """``host:port`` of an OTLP receiver; ``http://`` or ``grpc://`` before it may be left out."""
    scheme, _, rest = value.rpartition("://")
    address = rest.rstrip("/") if scheme.lower() in ("", "http", "grpc") else value
    try:
        split_address(address)
    except ValueError as error:
        raise Sorry(f"{name}: {error}") from None
    return address


def http_address(name: str, value: str) -> str:
    """The address of a sidecar's metrics, without a slash at its end."""
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or not value.isascii() or not value.isprintable() or " " in value:
        raise Sorry(f"{name}: {shown(value)} is not an address: write it like http://127.0.0.1:9464")
    return value.rstrip("/")
