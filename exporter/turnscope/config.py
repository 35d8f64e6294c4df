"""Every setting of the sidecar, once: name, default and help.

A setting ``data_dir`` is the environment variable ``TURNSCOPE_DATA_DIR`` and the option ``--data-dir``; the
option wins.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from turnscope.model import shown

DEFAULT_DATA_DIR = Path("~/.local/share/turnscope")
_MAX_TEXT: Final = 1000
"""Of a value that is no list: longer ones cannot be meant."""
_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_HEADER_VALUE: Final = re.compile(r"[ -~]+")
_URL: Final = re.compile(r"https?://[^\s/@?#]+(/[^\s?#]*)?")
_MAX_TARGETS: Final = 64
_LISTS: Final = frozenset({"engine_names", "engine_metrics", "export_otlp_headers", "export_spans_headers"})


def readable(value: str, *, listed: bool = False) -> str:
    """``value`` if it can be meant, and written down anywhere. Raises ``ValueError`` with one sentence.

    What is ``listed`` may be empty and of any length.
    """
    if not value.strip() and not listed:
        raise ValueError("it is empty: leave it out, or give it a value")
    if len(value) > _MAX_TEXT and not listed:
        raise ValueError(f"{shown(value)} is too long")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{shown(value)} is not UTF-8 text: use another name") from None
    return value


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` (IPv6 in brackets) in two. Raises ``ValueError`` with one sentence."""
    host, _, port = address.rpartition(":")
    if not _HOST.fullmatch(host) or not _PORT.fullmatch(port) or int(port) > 65535:
        raise ValueError(f"{shown(address)} is not an address: write it like 127.0.0.1:4317")
    return host.strip("[]"), int(port)


def split_pairs(text: str, what: str) -> dict[str, str]:
    """``a=b,c=d`` as a dict. Raises ``ValueError`` with one sentence."""
    pairs = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ValueError(f"{shown(part)} is not of the form {what}: several are separated by commas")
        pairs[name.strip()] = value.strip()
    return pairs


def _setting(default: Any, metavar: str, description: str, **limits: Any) -> Any:
    """One setting; ``metavar`` says in the command's help what kind of value it takes."""
    return Field(default, description=description, json_schema_extra={"metavar": metavar}, **limits)


class Settings(BaseSettings):
    """The settings of ``turnscope serve``. An environment variable that is empty counts as not set."""

    model_config = SettingsConfigDict(env_prefix="TURNSCOPE_", env_ignore_empty=True, extra="ignore")

    otlp_grpc: str = _setting(
        "127.0.0.1:4317", "HOST:PORT", "Where hooks, agents and collectors send to, OTLP over gRPC."
    )
    otlp_http: str = _setting(
        "127.0.0.1:4318", "HOST:PORT", "The same over HTTP: /v1/traces and /v1/logs, protobuf or JSON."
    )
    http: str = _setting("127.0.0.1:9464", "HOST:PORT", "Where /metrics, /healthz, /readyz and /status are served.")
    data_dir: Path = _setting(
        DEFAULT_DATA_DIR,
        "FOLDER",
        "Folder for the journal (what was received and is not stored yet), and for the store unless --store.",
    )
    store: str | None = _setting(
        None, "FOLDER|URL", "Where turns are stored as Parquet files: a folder or s3://bucket/folder. [DATA_DIR/store]"
    )
    store_writer: str = _setting(
        "serve", "NAME", "This sidecar's name in the store; two that share a store must not share a name."
    )
    export_otlp: str | None = _setting(
        None,
        "URL",
        "Send a trace of every turn there, e.g. http://127.0.0.1:4317 (gRPC) or http://host:4318 (HTTP).",
    )
    export_otlp_headers: str = _setting("", "NAME=VALUE,...", "Headers to send traces with, e.g. authorization=KEY.")
    export_spans: str | None = _setting(
        None,
        "URL",
        "Pass spans of agents on to your own backend, unchanged and with their content: addressed like --export-otlp.",
    )
    export_spans_headers: str = _setting("", "NAME=VALUE,...", "Headers to pass them on with.")
    trace_ratio: float = _setting(
        1.0, "SHARE", "Turns of which a trace is sent; suspicious, failed and slow ones always.", ge=0, le=1
    )
    trace_slow_seconds: float = _setting(
        10.0, "SECONDS", "A time to first token, or a prefill, from which on a turn is slow.", gt=0, le=86400
    )
    trace_queue: int = _setting(2048, "COUNT", "Turn traces that may wait for their backend.", ge=1, le=10**6)
    engine_names: Annotated[dict[str, str], NoDecode] = _setting(
        {}, "ID=NAME,...", "Names for engines in labels, by vLLM's engine_id. Others get their role and a number."
    )
    max_engine_names: int = _setting(
        64, "COUNT", "Engines with a name of their own in labels; those beyond share ROLE-other.", ge=1, le=1000
    )
    engine_metrics: Annotated[dict[str, str], NoDecode] = _setting(
        {},
        "NAME=URL,...",
        "Engines' own metrics to read, by the engine's name in labels, e.g. prefill-0=http://127.0.0.1:8100/metrics.",
    )
    engine_metrics_seconds: float = _setting(5.0, "SECONDS", "Time between two looks at them.", ge=0.1, le=300)
    grace_seconds: float = _setting(5.0, "SECONDS", "From a turn being complete to its being counted.", ge=0, le=3600)
    stuck_seconds: float = _setting(
        300.0, "SECONDS", "A request that takes no step for longer counts as stuck.", gt=0, le=86400
    )
    proxy_ttl_seconds: float = _setting(
        450.0, "SECONDS", "How long your proxy keeps a handle for the next turn.", gt=0, le=7 * 86400
    )
    session_rest_seconds: float = _setting(
        1800.0,
        "SECONDS",
        "A session of which nothing came for so long is counted in the metrics.",
        gt=0,
        le=7 * 86400,
    )
    node: str | None = _setting(None, "NAME", "This node's name in labels. [its host name]")
    node_hosts: Annotated[list[str], NoDecode] = _setting(
        [], "NAME,...", "Host names of the processes on this node, with * and ? as in file names. [its own]"
    )
    fabric_seconds: float = _setting(
        2.0, "SECONDS", "Time between two looks at this node's card counters; 0: none.", ge=0, le=20
    )
    fabric_window_seconds: float = _setting(
        60.0, "SECONDS", "Time over which they are held against NIXL's bytes.", gt=0, le=3600
    )
    infiniband_dir: Path = _setting(Path("/sys/class/infiniband"), "FOLDER", "Where the EFA devices' counters are.")
    net_dir: Path = _setting(Path("/sys/class/net"), "FOLDER", "Where the Ethernet interfaces' counters are.")
    record: Path | None = _setting(
        None, "FILE", "Also append what is received to this file, as OTLP JSON lines; turnscope replay sends it again."
    )
    max_message_bytes: int = _setting(4 * 2**20, "BYTES", "Largest OTLP message taken in.", ge=1024, le=64 * 2**20)
    journal_max_bytes: int = _setting(
        4 * 2**30, "BYTES", "Largest journal; beyond it senders must wait.", ge=2**20, le=2**50
    )
    checkpoint_seconds: float = _setting(
        60.0, "SECONDS", "Time between checkpoints, which shorten a restart.", gt=0, le=3600
    )
    log_level: str = _setting("info", "LEVEL", "debug, info, warning or error.")

    @field_validator("otlp_grpc", "otlp_http", "http")
    @classmethod
    def _address(cls, value: str) -> str:
        split_address(value)
        return value

    @field_validator("engine_names", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return split_pairs(value, "ENGINE_ID=NAME") if isinstance(value, str) else value

    @field_validator("engine_metrics", mode="before")
    @classmethod
    def _targets(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        targets = split_pairs(value, "NAME=URL")
        if len(targets) > _MAX_TARGETS:
            raise ValueError(f"these are {len(targets)} engines, and one sidecar reads at most {_MAX_TARGETS}")
        for url in targets.values():
            if not _URL.fullmatch(url):
                raise ValueError(f"{shown(url)} is not an address of metrics: write it like http://host:8000/metrics")
        return targets

    @field_validator("node_hosts", mode="before")
    @classmethod
    def _hosts(cls, value: object) -> object:
        return list(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

    @field_validator("export_otlp_headers", "export_spans_headers")
    @classmethod
    def _headers(cls, value: str) -> str:
        for name, text in split_pairs(value, "NAME=VALUE").items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(text):
                raise ValueError(
                    f"{shown(name)} is no header, or its value is not ASCII: write it like authorization=KEY"
                )
        return value

    @field_validator("log_level")
    @classmethod
    def _level(cls, value: str) -> str:
        if value.lower() not in ("debug", "info", "warning", "error"):
            raise ValueError(f"{shown(value)} is not one of debug, info, warning, error")
        return value.lower()

    # The last to be written is the first to be asked: before a value is taken apart.
    @field_validator("*", mode="before")
    @classmethod
    def _readable(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, str):
            readable(value, listed=info.field_name in _LISTS)
        return value

    @property
    def journal_dir(self) -> Path:
        """Where the journal and its checkpoints are kept."""
        return self.data_dir.expanduser() / "journal"

    @property
    def store_url(self) -> str:
        """Where the store is."""
        return self.store or str(self.data_dir.expanduser() / "store")
