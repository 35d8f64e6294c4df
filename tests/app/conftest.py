"""Stores that several files of these tests look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store import huge


@pytest.fixture(scope="session")
def huge_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,000,000 turns in 50,000 sessions."""
    return Path(huge.build(tmp_path_factory.mktemp("huge")))
