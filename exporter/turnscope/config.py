"""Every setting of the sidecar, once: name, default and help.

A setting ``data_dir`` is the environment variable ``TURNSCOPE_DATA_DIR`` and the option ``--data-dir``; the
option wins.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

DEFAULT_DATA_DIR = Path("~/.local/share/turnscope")


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` (IPv6 in brackets) in two. Raises ``ValueError`` with one sentence."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{address!r} is not an address: write it like 127.0.0.1:4317")
    return host.strip("[]"), int(port)


def split_pairs(text: str, what: str) -> dict[str, str]:
    """``a=b,c=d`` as a dict. Raises ``ValueError`` with one sentence."""
    pairs = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ValueError(f"{part!r} is not of the form {what}: several are separated by commas")
        pairs[name.strip()] = value.strip()
    return pairs


class Settings(BaseSettings):
    """The settings of ``turnscope serve``."""

    model_config = SettingsConfigDict(env_prefix="TURNSCOPE_", extra="ignore")

    otlp_grpc: str = Field("127.0.0.1:4317", description="Where hooks and collectors send to, OTLP over gRPC.")
    http: str = Field("127.0.0.1:9464", description="Where /metrics, /healthz, /readyz and /status are served.")
    data_dir: Path = Field(DEFAULT_DATA_DIR, description="Folder for the journal, and for the store unless --store.")
    store: str | None = Field(None, description="The Parquet store: a folder or s3://bucket/folder. [DATA_DIR/store]")
    store_writer: str = Field("serve", description="This sidecar's name in the store; two must not share one.")
    export_otlp: str | None = Field(
        None,
        description="Send a trace of every turn there, e.g. http://127.0.0.1:4317 (gRPC) or http://host:4318 (HTTP).",
    )
    export_otlp_headers: str = Field("", description="Headers for it: NAME=VALUE,...")
    trace_queue: int = Field(2048, ge=1, description="Turn traces that may wait for their backend.")
    engine_names: Annotated[dict[str, str], NoDecode] = Field(
        {}, description="Names for engines in labels: ENGINE_ID=NAME,... Others get their role and a number."
    )
    grace_seconds: float = Field(5.0, ge=0, le=3600, description="From a turn being complete to its being counted.")
    stuck_seconds: float = Field(
        300.0, gt=0, le=86400, description="A request that takes no step for longer counts as stuck."
    )
    proxy_ttl_seconds: float = Field(
        450.0, gt=0, le=7 * 86400, description="How long your proxy keeps a handle for the next turn."
    )
    record: Path | None = Field(None, description="Also append what is received to this file, as OTLP JSON lines.")
    max_message_bytes: int = Field(4 * 2**20, ge=1024, le=2**30, description="Largest OTLP message taken in.")
    journal_max_bytes: int = Field(4 * 2**30, ge=2**20, description="Largest journal; beyond it senders must wait.")
    checkpoint_seconds: float = Field(
        60.0, gt=0, le=3600, description="Time between checkpoints, which shorten a restart."
    )
    log_level: str = Field("info", description="debug, info, warning or error.")

    @field_validator("otlp_grpc", "http")
    @classmethod
    def _address(cls, value: str) -> str:
        split_address(value)
        return value

    @field_validator("engine_names", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return split_pairs(value, "ENGINE_ID=NAME") if isinstance(value, str) else value

    @field_validator("export_otlp_headers")
    @classmethod
    def _headers(cls, value: str) -> str:
        split_pairs(value, "NAME=VALUE")
        return value

    @field_validator("log_level")
    @classmethod
    def _level(cls, value: str) -> str:
        if value.lower() not in ("debug", "info", "warning", "error"):
            raise ValueError(f"{value!r} is not one of debug, info, warning, error")
        return value.lower()

    @property
    def journal_dir(self) -> Path:
        """Where the journal and its checkpoints are kept."""
        return self.data_dir.expanduser() / "journal"

    @property
    def store_url(self) -> str:
        """Where the store is."""
        return self.store or str(self.data_dir.expanduser() / "store")
