"""Make the environment of a router that is not ours, vllm-router, in ``build/router``: a proxy without a hook.

Runs with any Python >= 3.11 and the standard library alone; does nothing when the environment is there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "router"
ROUTER = "vllm-router==0.1.17"


def command() -> Path:
    """The router's own command."""
    return FOLDER / "bin" / "vllm-router"


def complete() -> bool:
    """Whether this version is installed."""
    installed = FOLDER / "installed"
    return command().exists() and installed.exists() and installed.read_text() == ROUTER


def set_up() -> None:
    """Install it unless it is there. Raises ``OSError`` or ``CalledProcessError``."""
    if complete():
        return
    sys.stderr.write(f"setting up {ROUTER} in {FOLDER}, a proxy without a hook (about 150 MB)\n")
    venv.create(FOLDER, with_pip=True, clear=True)
    python = FOLDER / "bin" / "python"
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    install = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
    subprocess.run([*install, "--quiet", ROUTER], check=True)
    (FOLDER / "installed").write_text(ROUTER)


if __name__ == "__main__":
    try:
        set_up()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{ROUTER} could not be set up in {FOLDER}: {error}")
