"""The hooks' settings, from the environment of the engine's or proxy's processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

ENDPOINT: Final = "TURNSCOPE_ENDPOINT"
OFF_FILE: Final = "TURNSCOPE_OFF_FILE"
ENGINE_NAME: Final = "TURNSCOPE_ENGINE_NAME"
GENERATION: Final = "TURNSCOPE_GENERATION"
HEARTBEAT: Final = "TURNSCOPE_HEARTBEAT_SECONDS"
DIGESTS: Final = "TURNSCOPE_DIGESTS"
DIGEST_KEY: Final = "TURNSCOPE_DIGEST_KEY"
VARIABLES: Final = (ENDPOINT, OFF_FILE, ENGINE_NAME, GENERATION, HEARTBEAT, DIGESTS, DIGEST_KEY)

_TEXTS: Final = tuple(name for name in VARIABLES if name != OFF_FILE)
"""Those whose value is sent or said; a path may be any bytes."""

SHORTEST_KEY: Final = 16
"""Characters of a key that is not guessed at once."""
_SWITCH: Final = {"": True, "on": True, "off": False}

OTLP_GRPC_PORT: Final = 4317
OTLP_HTTP_PORT: Final = 4318
_TLS: Final = {"": False, "http": False, "grpc": False, "https": True, "grpcs": True}


class SettingsError(ValueError):
    """One sentence: which variable, what is wrong, what to do."""


class Endpoint(msgspec.Struct, frozen=True):
    """Where events go, always over OTLP/gRPC."""

    target: str
    """``host:port``."""
    tls: bool = False

    def __str__(self) -> str:
        return f"{'grpcs' if self.tls else 'grpc'}://{self.target}"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a process needs to know to send."""

    endpoint: Endpoint
    off_file: str | None = None
    engine_name: str | None = None
    heartbeat_s: float = 5.0
    digests: bool = True
    digest_key: str | None = None
    """None: the sidecar is asked for its own."""


def parse_endpoint(text: str) -> Endpoint:
    """``http://host:port``, ``https://``, ``grpc://``, ``grpcs://`` or a bare ``host:port``; else SettingsError."""
    scheme, separator, rest = text.strip().rpartition("://")
    if scheme.lower() not in _TLS:
        raise SettingsError(
            f"{ENDPOINT}={text}: turnscope does not know the scheme {scheme}://: it sends OTLP over gRPC; use "
            f"grpc://host:{OTLP_GRPC_PORT}, or grpcs:// for TLS"
        )
    try:
        parts = urlsplit(f"//{rest}")
        port = parts.port or OTLP_GRPC_PORT
    except ValueError as error:
        raise SettingsError(f"{ENDPOINT}={text}: {error}; use grpc://host:{OTLP_GRPC_PORT}") from None
    if not parts.hostname:
        raise SettingsError(f"{ENDPOINT}={text}: no host in it; use grpc://host:{OTLP_GRPC_PORT}")
    if port == OTLP_HTTP_PORT or parts.path.strip("/"):
        raise SettingsError(
            f"{ENDPOINT}={text}: this is an OTLP/HTTP address (port {OTLP_HTTP_PORT} or a path), "
            f"and turnscope sends OTLP over gRPC: use grpc://{parts.hostname}:{OTLP_GRPC_PORT}"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Endpoint(f"{host}:{port}", _TLS[scheme.lower() if separator else ""])


def _is_text(value: str) -> bool:
    """Python keeps bytes of the environment that are no UTF-8 as halves of characters, which nothing can encode."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def read(environment: Mapping[str, str]) -> Settings | None:
    """The settings, or None when no endpoint is set: then the hook does not exist. SettingsError when one is wrong."""
    text = environment.get(ENDPOINT, "").strip()
    if not text:
        return None
    for name in _TEXTS:
        if not _is_text(environment.get(name, "")):
            raise SettingsError(f"{name} is no text in UTF-8: give it another value")
    try:
        heartbeat_s = float(environment.get(HEARTBEAT) or 5.0)
    except ValueError:
        heartbeat_s = 0.0
    if not 0.05 <= heartbeat_s <= 3600:
        raise SettingsError(f"{HEARTBEAT}={environment[HEARTBEAT]}: a number of seconds from 0.05 to 3600 is needed")
    digests = _SWITCH.get(environment.get(DIGESTS, "").strip().lower())
    if digests is None:
        raise SettingsError(f"{DIGESTS}={environment[DIGESTS]}: on or off is needed")
    digest_key = environment.get(DIGEST_KEY, "").strip() or None
    if digest_key is not None and len(digest_key) < SHORTEST_KEY:
        raise SettingsError(f"{DIGEST_KEY} has fewer than {SHORTEST_KEY} characters: a longer secret is needed")
    return Settings(
        endpoint=parse_endpoint(text),
        off_file=environment.get(OFF_FILE) or None,
        engine_name=environment.get(ENGINE_NAME) or None,
        heartbeat_s=heartbeat_s,
        digests=digests,
        digest_key=digest_key,
    )
