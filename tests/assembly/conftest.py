"""Fixtures of assembly's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.sysfs import Sysfs


@pytest.fixture
def tree(tmp_path: Path) -> Sysfs:
    """A node with an Ethernet card; EFA is added by tests."""
    tree = Sysfs(tmp_path)
    tree.add_ethernet()
    return tree
