"""A test that cannot run fails and names what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _run(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    test = folder / "test_it.py"
    test.write_text(f"import pytest\n\n{body}\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.no_skips", "--rootdir", folder, "-c", "/dev/null", test]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "body",
    [
        "def test_it():\n    pytest.skip('no prometheus here')",
        "@pytest.mark.skip(reason='no prometheus here')\ndef test_it():\n    pass",
        "@pytest.fixture\ndef it():\n    pytest.skip('no prometheus here')\n\ndef test_it(it):\n    pass",
    ],
)
def test_a_skip_is_a_failure_with_its_cause(tmp_path: Path, body: str) -> None:
    done = _run(tmp_path, body)
    assert done.returncode == 1
    assert "not allowed to skip: no prometheus here" in done.stdout


def test_a_test_that_runs_is_left_alone(tmp_path: Path) -> None:
    assert _run(tmp_path, "def test_it():\n    pass").returncode == 0
