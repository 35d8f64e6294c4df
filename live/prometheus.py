"""A real Prometheus that scrapes a run's sidecar and its engines, as an operator's does."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx

from live.engines import Engine, LiveError, alive, free_ports, start, stop, wait_ready

JOB: Final = "turnscope"
"""Of the sidecar's scrapes, as the rules want it."""
ENGINES: Final = "vllm"
SCRAPE_S: Final = 2.0
START_SECONDS: Final = 60
ALL: Final = "1d"
"""A range that holds the whole run."""
_CONFIG: Final = f"""
global: {{scrape_interval: {SCRAPE_S:g}s, scrape_timeout: {SCRAPE_S:g}s}}
scrape_configs:
  - job_name: {JOB}
    file_sd_configs: [{{files: [{JOB}.json], refresh_interval: 1s}}]
  - job_name: {ENGINES}
    file_sd_configs: [{{files: [{ENGINES}.json], refresh_interval: 1s}}]
"""


class Prometheus:
    """The running server."""

    def __init__(self, url: str, folder: Path) -> None:
        self._api = f"{url}/api/v1"
        self._folder = folder

    def scrape_sidecar(self, url: str) -> float:
        """Scrape it from now on; the time of the first scrape."""
        self._targets(JOB, [{"targets": [_address(url)]}])
        return self.settled()

    def scrape_engines(self, engines: Iterable[Engine]) -> None:
        """From now on these engines and no others. Each life of one has series of its own: counters that stand where
        they stood before do not show that they began at 0 in between."""
        labels = {engine.url: {"engine": engine.name, "life": str(engine.life)} for engine in engines}
        self._targets(ENGINES, [{"targets": [_address(url)], "labels": own} for url, own in labels.items()])

    def _targets(self, job: str, targets: list[dict[str, Any]]) -> None:
        new = self._folder / f"{job}.new"
        new.write_text(json.dumps(targets))
        new.rename(self._folder / f"{job}.json")

    def moment(self, expression: str, at_s: float) -> list[dict[str, Any]]:
        """The series that it has then: ``metric`` (its labels) and ``value`` (time and text)."""
        found: list[dict[str, Any]] = self.get("query", query=expression, time=at_s)["result"]
        return found

    def curve(self, expression: str, begin_s: float, end_s: float, step_s: float) -> list[dict[str, Any]]:
        """The series that it has in between: ``metric`` and ``values``."""
        found: list[dict[str, Any]] = self.get("query_range", query=expression, start=begin_s, end=end_s, step=step_s)[
            "result"
        ]
        return found

    def counted(self, selector: str, at_s: float) -> float:
        """What these counters have counted until then: raw samples, summed, from each one's first on, over restarts."""
        total = 0.0
        for series in self.moment(f"{selector}[{ALL}]", at_s):
            values = [0.0, *(float(value) for _, value in series["values"])]
            total += sum(b - a if b >= a else b for a, b in itertools.pairwise(values))
        return total

    def last_scrape_s(self) -> float:
        """When the sidecar was last scraped: to the millisecond the time of all samples of that scrape."""
        found = self.moment(f'up{{job="{JOB}"}}[{ALL}]', time.time())
        return float(found[0]["values"][-1][0]) if found else 0.0

    def settled(self) -> float:
        """The time of a scrape that began after this was called, when it is there."""
        now = time.time()
        deadline = now + START_SECONDS
        while (last := self.last_scrape_s()) <= now:
            if time.time() > deadline:
                raise LiveError(f"Prometheus has not scraped the sidecar for {START_SECONDS} s.")
            time.sleep(0.2)
        return last

    def get(self, path: str, **parameters: str | float) -> Any:
        """The data of an answer."""
        answer = httpx.get(f"{self._api}/{path}", params=parameters, trust_env=False, timeout=60)
        content = answer.json()
        if content["status"] != "success":
            raise LiveError(f"Prometheus refused {path} {parameters}: {content['error']}")
        return content["data"]


def _address(url: str) -> str:
    return url.removeprefix("http://")


@contextlib.contextmanager
def running_prometheus(folder: Path, *options: str, config: str = _CONFIG) -> Iterator[Prometheus]:
    """Start it with its data under ``folder``, by default scraping nothing yet."""
    server = shutil.which("prometheus")
    if server is None:
        raise LiveError("There is no prometheus: apt-get install --no-install-recommends prometheus")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prometheus.yml").write_text(config)
    (port,) = free_ports(1)
    url, log = f"http://127.0.0.1:{port}", folder / "prometheus.log"
    command = [server, *options, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    process = start([*command, f"--web.listen-address=127.0.0.1:{port}"], log, {})
    try:
        wait_ready(f"{url}/-/ready", alive("Prometheus", process, log), seconds=START_SECONDS)
        yield Prometheus(url, folder)
    finally:
        stop(process)
