"""Every situation in ``docs/situations.md`` is held by tests that exist, in the file that is linked before them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "situations.md"
ROWS = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")][2:]


def _tests(cell: str) -> list[tuple[Path, str]]:
    """Each test named, with its file."""
    found, file = [], PAGE
    for link, name in re.findall(r"\]\(([^)]+)\)|`(test_\w+)`", cell):
        file = (PAGE.parent / link).resolve() if link else file
        if name:
            found.append((file, name))
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("| ")[:40])
def test_every_situation_names_tests_that_exist(row: list[str]) -> None:
    _, said, tests = row
    named = _tests(tests)
    assert said
    assert named
    assert [name for file, name in named if f"def {name}(" not in file.read_text()] == []
