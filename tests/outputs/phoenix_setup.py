"""Make the environment of the trace backend that tests send to: Arize Phoenix, in ``build/phoenix``.

Runs with any Python >= 3.11 and the standard library alone; does nothing when the environment is there. Its own,
since its dependencies clash with ours.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build" / "phoenix"
PHOENIX = "arize-phoenix==20.26.1"
DATABASE = FOLDER / "empty.db"
"""Made once, since its migrations take longer than the test."""
START_S = 500.0
"""Half a minute on an idle machine."""


def command() -> Path:
    """Phoenix's own command."""
    return FOLDER / "bin" / "phoenix"


def complete() -> bool:
    """Whether this version is installed and ready."""
    return command().exists() and DATABASE.exists() and (FOLDER / "installed").exists() and _installed() == PHOENIX


def _installed() -> str:
    return (FOLDER / "installed").read_text()


def set_up() -> None:
    """Install Phoenix unless it is there. Raises ``OSError``, ``CalledProcessError`` or ``RuntimeError``."""
    if complete():
        return
    sys.stderr.write(f"setting up {PHOENIX} in {FOLDER} for the trace tests (about 600 MB)\n")
    venv.create(FOLDER, with_pip=True, clear=True)
    python = FOLDER / "bin" / "python"
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    install = [uv, "pip", "install", "--quiet", "--python", python] if uv else [python, "-m", "pip", "install", "-q"]
    subprocess.run([*install, PHOENIX], check=True)
    # Else every start compiles all of it where PYTHONDONTWRITEBYTECODE is set.
    subprocess.run([python, "-m", "compileall", "-q", FOLDER / "lib"], check=False)
    with tempfile.TemporaryDirectory() as name:
        with serving(Path(name)):
            pass
        shutil.copy(Path(name) / "phoenix.db", DATABASE)
    (FOLDER / "installed").write_text(PHOENIX)


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[tuple[int, int]]:
    """Phoenix with its data in ``folder``: its HTTP port and the port for OTLP over gRPC, once it answers."""
    http, grpc = _free_ports()
    settings = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(http),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    log = folder / "phoenix.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [command(), "serve"], env={**os.environ, **settings}, cwd=folder, stdout=out, stderr=out
        )
    try:
        deadline = time.monotonic() + START_S
        while not _answers(f"http://127.0.0.1:{http}/v1/projects"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Phoenix did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.5)
        yield http, grpc
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        return one.getsockname()[1], two.getsockname()[1]


if __name__ == "__main__":
    try:
        set_up()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"Phoenix could not be set up in {FOLDER}: {error}")
