"""A real Alertmanager with the shipped routes, and the webhook that it delivers to."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.cli.served import free_port

CONFIG = Path(__file__).parents[2] / "deploy" / "alertmanager.yml"
WAIT_S = 60.0


class Webhook:
    """Keeps what is posted to it, by path: ``page`` or ``ticket``."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, Any]]] = []
        taken = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                taken.append((self.path.strip("/"), body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def firing(self) -> list[tuple[str, str, int]]:
        """Path, alert and number of firing alerts of each notification."""
        return [
            (path, body["groupLabels"]["alertname"], sum(a["status"] == "firing" for a in body["alerts"]))
            for path, body in self.got
        ]

    def wait(self, number: int) -> None:
        """Until so many notifications have come."""
        deadline = time.monotonic() + WAIT_S
        while len(self.got) < number:
            assert time.monotonic() < deadline, f"{len(self.got)} of {number} notifications came"
            time.sleep(0.1)


@contextlib.contextmanager
def webhook() -> Iterator[Webhook]:
    """Ended on the way out."""
    hook = Webhook()
    thread = threading.Thread(target=hook.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        hook.server.shutdown()
        hook.server.server_close()
        thread.join(10)


def hurried(config: dict[str, Any], url: str) -> dict[str, Any]:
    """The shipped configuration, with seconds instead of minutes, and delivering to ``url``."""
    for route in (config["route"], *config["route"]["routes"]):
        route |= {"group_wait": "2s", "group_interval": "2s"}
    for receiver in config["receivers"]:
        for hook in receiver["webhook_configs"]:
            hook["url"] = f"{url}/{hook['url'].rpartition('/')[2]}"
    return config


@contextlib.contextmanager
def alertmanager(binary: str, url: str, folder: Path) -> Iterator[str]:
    """Its address; delivers to ``url``."""
    config = folder / "alertmanager.yml"
    config.write_text(yaml.safe_dump(hurried(yaml.safe_load(CONFIG.read_text()), url)))
    address = f"127.0.0.1:{free_port()}"
    log = folder / "alertmanager.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                binary,
                f"--config.file={config}",
                f"--storage.path={folder / 'alertmanager'}",
                f"--web.listen-address={address}",
                "--cluster.listen-address=",
            ],
            stdout=out,
            stderr=out,
        )
    try:
        deadline = time.monotonic() + WAIT_S
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"http://{address}/-/ready", trust_env=False).status_code == 200:
                    break
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(30)
