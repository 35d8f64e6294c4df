"""A real trace backend: Arize Phoenix, started from the environment that ``phoenix_setup.py`` makes."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.outputs import phoenix_setup


class Phoenix:
    """A running server: OTLP over gRPC at ``endpoint``, its own API at ``url``."""

    def __init__(self, url: str, endpoint: str) -> None:
        self.url = url
        self.endpoint = endpoint

    def spans(self, number: int) -> list[dict[str, Any]]:
        """All spans of the default project, once there are at least that many."""
        deadline = time.monotonic() + 120
        address = f"{self.url}/v1/projects/default/spans"
        while True:
            answer = httpx.get(address, params={"limit": 1000}, trust_env=False, timeout=60)
            answer.raise_for_status()
            found: list[dict[str, Any]] = answer.json()["data"]
            if len(found) >= number:
                return found
            assert time.monotonic() < deadline, f"{len(found)} of {number} spans"
            time.sleep(0.5)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Phoenix]:
    """With an empty database in ``folder``. Fails the test by name when Phoenix is not installed."""
    if not phoenix_setup.complete():
        pytest.fail("Arize Phoenix is missing: run python tests/outputs/phoenix_setup.py, or make test")
    shutil.copy(phoenix_setup.DATABASE, folder / "phoenix.db")
    with phoenix_setup.serving(folder) as (http, grpc):
        yield Phoenix(f"http://127.0.0.1:{http}", f"http://127.0.0.1:{grpc}")
