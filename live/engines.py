"""Start and stop the two vLLM engines of the live pair. Whatever happens, they are stopped at the end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

MODEL_NAME = "tiny"
TURNSCOPE = Path(sys.executable).parent / "turnscope"
READY_SECONDS = 900
STOP_SECONDS = 20
WARM_UP = "Before the first real request the engine gets one with a prompt of a few dozen tokens, " * 3


class LiveError(Exception):
    """One sentence: what went wrong, where, what to look at."""


@dataclass(frozen=True)
class PairConfig:
    """How both engines are set."""

    name: str
    ordinal: int
    """Engines are called ``prefill-<ordinal>`` and ``decode-<ordinal>``."""
    prefix_caching: bool
    """On P; D always has it on."""
    hold_ttl_s: int = 30
    threshold: int = 64
    load_failure_policy: str = "fail"
    bidirectional: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to both engines' environment, e.g. ``TURNSCOPE_ENDPOINT``."""
    arguments: tuple[str, ...] = ()
    """Added to both command lines."""


@dataclass
class Engine:
    """One running engine, and how it was started."""

    name: str
    role: str
    port: int
    log: Path
    command: list[str]
    environment: dict[str, str]
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def require_alive(self) -> None:
        """Raise with the end of its log when the engine is gone."""
        code = self.process.poll()
        if code is not None:
            raise LiveError(f"{self.name} ended with code {code}; the end of {self.log}:\n{tail(self.log)}")


@dataclass(frozen=True)
class Pair:
    """P and D, ready."""

    prefill: Engine
    decode: Engine

    @property
    def engines(self) -> tuple[Engine, Engine]:
        return self.prefill, self.decode

    @property
    def urls(self) -> dict[str, str]:
        """Addresses by name."""
        return {engine.name: engine.url for engine in self.engines}


def free_ports(count: int) -> list[int]:
    """Different ports nobody listens on at this moment, below those that the kernel gives to outgoing connections: such
    a one could be taken before an engine, which loads for half a minute first, comes to listen on it."""
    lowest_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    candidates = random.SystemRandom().sample(range(10_000, lowest_given), 100 + count)
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        while len(found) < count:
            sock = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                sock.bind(("127.0.0.1", candidates.pop()))
                found.append(int(sock.getsockname()[1]))
        return found


def tail(path: Path, lines: int = 25) -> str:
    """The last lines of a log."""
    if not path.exists():
        return "(no log)"
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def stop(process: subprocess.Popen[bytes], seconds: float = STOP_SECONDS) -> None:
    """End the process and its group, kindly and then not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
        if not _group_exists(process.pid):
            return
        time.sleep(1)
    deadline = time.monotonic() + seconds
    while _group_exists(process.pid) and time.monotonic() < deadline:
        time.sleep(0.2)


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def start(command: list[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own, its output going to ``log``."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        return subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
            start_new_session=True,
        )


@contextlib.contextmanager
def running_pair(config: PairConfig, *, python: Path, model: Path, logs: Path) -> Iterator[Pair]:
    """Start both engines, wait until both answer, warm them up; stop them on the way out."""
    ports = free_ports(4)
    with contextlib.ExitStack() as stack:
        engines = []
        for role, port, side_port in (("prefill", ports[0], ports[1]), ("decode", ports[2], ports[3])):
            name = f"{role}-{config.ordinal}"
            log = logs / f"{name}.log"
            command = _command(config, role, python, model, port)
            environment = _environment(config, name, python, side_port)
            engine = Engine(name, role, port, log, command, environment, start(command, log, environment))
            stack.callback(_stop_engine, engine)
            engines.append(engine)
        pair = Pair(*engines)
        for engine in pair.engines:
            wait_ready(f"{engine.url}/health", engine.require_alive, seconds=READY_SECONDS)
        for engine in pair.engines:
            _warm_up(engine)
        yield pair


def _stop_engine(engine: Engine) -> None:
    stop(engine.process)  # the one that it has by then


def kill(engine: Engine) -> None:
    """End it without warning, as a crash does."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(engine.process.pid, signal.SIGKILL)
    stop(engine.process)


def start_again(engine: Engine) -> None:
    """Start a killed one again, at the same address and under the same engine id."""
    engine.log = engine.log.with_name(f"{engine.log.stem}-again.log")
    engine.process = start(engine.command, engine.log, engine.environment)
    wait_ready(f"{engine.url}/health", engine.require_alive, seconds=READY_SECONDS)
    _warm_up(engine)


def _command(config: PairConfig, role: str, python: Path, model: Path, port: int) -> list[str]:
    transfer = {
        "kv_connector": "NixlConnector",
        "kv_role": "kv_producer" if role == "prefill" else "kv_consumer",
        "kv_buffer_device": "cpu",
        "engine_id": f"live-{role}-{config.ordinal}-{os.getpid()}",
        "kv_load_failure_policy": config.load_failure_policy,
        "kv_connector_extra_config": {
            "bidirectional_kv_xfer": config.bidirectional,
            "kv_recompute_threshold": config.threshold,
            "decoder_kv_blocks_ttl": config.hold_ttl_s,
        },
    }
    caching = config.prefix_caching or role == "decode"
    command = [str(python.parent / "vllm"), "serve", str(model), "--served-model-name", MODEL_NAME]
    command += ["--host", "127.0.0.1", "--port", str(port), "--enforce-eager", "--max-model-len", "8192"]
    command += ["--kv-transfer-config", json.dumps(transfer)]
    command += ["--enable-prefix-caching" if caching else "--no-enable-prefix-caching"]
    return [*command, *config.arguments]


def _environment(config: PairConfig, name: str, python: Path, side_port: int) -> dict[str, str]:
    return {
        "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "UCX_TLS": "tcp,self",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NIXL_SIDE_CHANNEL_PORT": str(side_port),
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # With it a prefix cache can be emptied.
        "VLLM_SERVER_DEV_MODE": "1",
        "TURNSCOPE_ENGINE_NAME": name,
        **config.environment,
    }


def wait_ready(url: str, require_alive: Callable[[], None], *, seconds: float) -> None:
    """Poll ``url`` until it answers 200; ``require_alive()`` raises when waiting has become pointless."""
    deadline = time.monotonic() + seconds
    while True:
        require_alive()
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url, timeout=5).status_code == 200:
                return
        if time.monotonic() > deadline:
            raise LiveError(f"{url} did not answer within {seconds:.0f} s; look at the logs under build/live.")
        time.sleep(0.5)


def alive(what: str, process: subprocess.Popen[bytes], log: Path) -> Callable[[], None]:
    """For ``wait_ready``: raises with the end of the log when the process is gone."""

    def check() -> None:
        if process.poll() is not None:
            raise LiveError(f"{what} ended with code {process.returncode}; the end of {log}:\n{tail(log)}")

    return check


def _warm_up(engine: Engine) -> None:
    """On machines with AMX a decode step that comes before any prefill dies with an illegal instruction."""
    body = {"model": MODEL_NAME, "prompt": WARM_UP, "max_tokens": 4, "temperature": 0}
    try:
        answer = httpx.post(f"{engine.url}/v1/completions", json=body, timeout=120)
    except httpx.HTTPError as error:
        engine.require_alive()
        raise LiveError(
            f"{engine.name} did not answer its first completion: {error!r}; look at {engine.log}."
        ) from None
    if answer.status_code != 200:
        raise LiveError(f"{engine.name} answered its first completion with {answer.status_code}; look at {engine.log}.")
