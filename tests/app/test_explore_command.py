"""``turnscope explore``: it starts on loopback, and says in one sentence why it cannot."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.rows import fill, turn
from turnscope.cli import explore
from turnscope.cli.errors import Sorry
from turnscope_app import controls, data


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from turnscope.cli.main import run; run()", "explore", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_a_missing_store_ends_it_with_one_sentence_and_code_2(tmp_path: Path) -> None:
    done = _run("--store", str(tmp_path / "none"))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"turnscope: There is no turnscope store at {tmp_path / 'none'}: start `turnscope serve")


def test_a_port_in_use_ends_it_with_one_sentence_and_code_2(tmp_path: Path) -> None:
    fill(tmp_path, turn(1))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = _run("--store", str(tmp_path), "--port", str(port))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"cannot listen on 127.0.0.1:{port} (Address already in use)" in line
    assert "--port" in line


def test_a_broken_store_ends_it_before_a_page_is_served(tmp_path: Path) -> None:
    fill(tmp_path, turn(1))
    (tmp_path / "manifests/w1.json").write_text("{")
    with pytest.raises(Sorry, match=r"w1\.json cannot be read"):
        explore.check(str(tmp_path), 1)


def test_the_server_stays_on_loopback_and_reports_to_nobody() -> None:
    command = explore.command(8501)
    assert "--server.address=127.0.0.1" in command
    assert "--server.port=8501" in command
    assert "--browser.gatherUsageStats=false" in command
    assert "--server.headless=true" in command
    assert explore.app_path().is_file()


def test_the_command_and_the_app_agree_on_what_they_are_told() -> None:
    assert explore.STORE_VARIABLE == data.STORE_VARIABLE
    assert explore.DEMO_VARIABLE == controls.DEMO_VARIABLE
