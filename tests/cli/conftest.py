"""System tools that these tests need; one that is missing fails the test by its name."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session")
def prometheus_binary() -> str:
    """A real Prometheus."""
    found = shutil.which("prometheus")
    if found is None:
        pytest.fail("prometheus is missing: apt-get install --no-install-recommends prometheus")
    return found
