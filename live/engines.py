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
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import httpx

from turnscope.semconv import Role

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
    hold_ttl_s: int = 20
    threshold: int = 64
    load_failure_policy: str = "fail"
    bidirectional: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to both engines' environment, e.g. ``TURNSCOPE_ENDPOINT``."""
    arguments: tuple[str, ...] = ()
    """Added to both command lines."""
    spare: tuple[str, ...] | None = None
    """Added to the command line of a second D, which the proxy knows as well; None: there is none."""


@dataclass
class Engine:
    """One running engine, and how it was started."""

    name: str
    role: Role
    port: int
    log: Path
    config: PairConfig
    """How it is set now."""
    engine_id: str
    command: Callable[[PairConfig, str], list[str]]
    """From how it is to be set, and its engine id."""
    environment: dict[str, str]
    process: subprocess.Popen[bytes]
    life: int = 1
    """One more with each start."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def require_alive(self) -> None:
        """Raise with the end of its log when the engine is gone."""
        code = self.process.poll()
        if code is not None:
            raise LiveError(f"{self.name} ended with code {code}; the end of {self.log}:\n{tail(self.log)}")

    def wait_ready(self) -> None:
        """Until it answers."""
        wait_ready(f"{self.url}/health", self.require_alive, seconds=READY_SECONDS)


@dataclass(frozen=True)
class Pair:
    """P and D."""

    prefill: Engine
    decode: Engine
    spare: Engine | None = None
    """A second D."""

    @property
    def engines(self) -> tuple[Engine, ...]:
        return self.prefill, *self.decodes

    @property
    def decodes(self) -> tuple[Engine, ...]:
        return (self.decode,) if self.spare is None else (self.decode, self.spare)

    def wait_ready(self) -> None:
        """Until both answer; and warm them up."""
        for engine in self.engines:
            engine.wait_ready()
        for engine in self.engines:
            _warm_up(engine)


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
def starting_pair(config: PairConfig, *, python: Path, model: Path, logs: Path) -> Iterator[Pair]:
    """Start its engines, which takes them half a minute to be ready; stop them on the way out."""
    prefill, decode = (f"{role}-{config.ordinal}" for role in (Role.PREFILL, Role.DECODE))
    wanted = [(prefill, Role.PREFILL, config), (decode, Role.DECODE, config)]
    if config.spare is not None:
        wanted.append((f"{decode}-spare", Role.DECODE, replace(config, arguments=config.arguments + config.spare)))
    ports = iter(free_ports(2 * len(wanted)))
    with contextlib.ExitStack() as stack:
        engines = []
        for name, role, own in wanted:
            port, side_port = next(ports), next(ports)
            log = logs / f"{name}.log"
            command = partial(_command, role=role, python=python, model=model, port=port)
            environment = _environment(own, name, python, side_port)
            engine_id = f"live-{name}-{os.getpid()}"
            process = start(command(own, engine_id), log, environment)
            engine = Engine(name, role, port, log, own, engine_id, command, environment, process)
            stack.callback(stop_engine, engine)
            engines.append(engine)
        yield Pair(*engines)


@contextlib.contextmanager
def running_pair(config: PairConfig, *, python: Path, model: Path, logs: Path) -> Iterator[Pair]:
    """The same, when both are ready."""
    with starting_pair(config, python=python, model=model, logs=logs) as pair:
        pair.wait_ready()
        yield pair


def stop_engine(engine: Engine) -> None:
    """End the process that it has by now, as an operator does."""
    stop(engine.process)


def kill(engine: Engine) -> None:
    """End it without warning, as a crash does."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(engine.process.pid, signal.SIGKILL)
    stop(engine.process)


def start_again(engine: Engine, config: PairConfig, *, same_id: bool) -> None:
    """Start one that has ended again, at the same address, and warm it up. Under the ``same_id`` as before the other
    engine goes on with what it knew of the process before, and what it reads from here fails."""
    if not same_id:
        engine.engine_id = f"live-{engine.name}-{os.getpid()}-{engine.life}"
    engine.log = engine.log.with_name(f"{engine.name}-life-{engine.life}.log")
    engine.config = config
    engine.process = start(engine.command(config, engine.engine_id), engine.log, engine.environment)
    engine.wait_ready()
    _warm_up(engine)


def _command(config: PairConfig, engine_id: str, *, role: Role, python: Path, model: Path, port: int) -> list[str]:
    transfer = {
        "kv_connector": "NixlConnector",
        "kv_role": "kv_producer" if role is Role.PREFILL else "kv_consumer",
        "kv_buffer_device": "cpu",
        "engine_id": engine_id,
        "kv_load_failure_policy": config.load_failure_policy,
        "kv_connector_extra_config": {
            "bidirectional_kv_xfer": config.bidirectional,
            "kv_recompute_threshold": config.threshold,
            "decoder_kv_blocks_ttl": config.hold_ttl_s,
        },
    }
    caching = config.prefix_caching or role is Role.DECODE
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
