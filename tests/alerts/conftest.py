"""System tools that these tests need; one that is missing fails the test by its name."""

from __future__ import annotations

import shutil

import pytest


def _found(program: str, package: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.fail(f"{program} is missing: apt-get install --no-install-recommends {package}")
    return path


@pytest.fixture(scope="session")
def prometheus_binary() -> str:
    """A real Prometheus."""
    return _found("prometheus", "prometheus")


@pytest.fixture(scope="session")
def alertmanager_binary() -> str:
    """A real Alertmanager."""
    return _found("prometheus-alertmanager", "prometheus-alertmanager")


@pytest.fixture(scope="session")
def amtool_binary() -> str:
    """Alertmanager's own checker."""
    return _found("amtool", "prometheus-alertmanager")
