"""``turnscope explore``: it starts on loopback, and says in one sentence why it cannot."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.serving import explorer
from tests.store.rows import fill, turn
from turnscope.cli import explore
from turnscope.cli.errors import Sorry


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from turnscope.cli.main import run; run()", "explore", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_a_missing_store_ends_it_with_one_sentence_and_code_2(tmp_path: Path) -> None:
    done = _run("--store", str(tmp_path / "none"))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"turnscope: there is no turnscope store at {tmp_path / 'none'}: check the address")


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


def test_an_application_opts_in_to_a_label_and_a_link() -> None:
    assert explore.labels(["desk=Ticket {session}", "shop=a=b {session}"]) == {
        "desk": "Ticket {session}",
        "shop": "a=b {session}",
    }
    assert explore.session_links(["desk=https://t.example/{session}"]) == {"desk": "https://t.example/{session}"}


@pytest.mark.parametrize(
    "given",
    [
        "desk",
        "=https://t.example/{session}",
        "desk=https://t.example/",
        "desk=http://t.example/{session}",
        "desk=javascript:alert('{session}')",
        "desk=https://{session}.example/",
        "desk=https://t.example/<b>{session}",
    ],
)
def test_a_link_that_is_no_https_address_with_a_place_for_the_id_is_refused(given: str) -> None:
    with pytest.raises(Sorry, match="--session-link"):
        explore.session_links([given])


@pytest.mark.parametrize("given", ["turnscope.example", "https://turnscope.example/", "https://", "ftp://t.example"])
def test_an_origin_is_an_address_without_a_path(given: str) -> None:
    with pytest.raises(Sorry, match="--origin"):
        explore.origins([given])


def test_a_browser_is_answered_under_a_named_origin_and_under_no_other(tmp_path: Path) -> None:
    fill(tmp_path, turn(1))
    with explorer(tmp_path, ["https://turnscope.example"]) as address:
        port = int(address.rpartition(":")[2])
        assert _handshake(port, f"127.0.0.1:{port}", address) == 101
        assert _handshake(port, "turnscope.example", "https://turnscope.example") == 101
        assert _handshake(port, "turnscope.example", "https://evil.example") == 403
        assert _handshake(port, "evil.example", "http://evil.example") == 403


def _handshake(port: int, host: str, origin: str) -> int:
    """The status with which a WebSocket is answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Host": host, "Origin": origin, "Connection": "Upgrade", "Upgrade": "websocket"}
    headers |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    connection.request("GET", "/_stcore/stream", headers=headers)
    status = connection.getresponse().status
    connection.close()
    return status
