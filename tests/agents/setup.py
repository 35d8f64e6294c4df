"""Make the environments of real agents and their instrumentations, in ``build/agents``: they clash with ours.

Runs with any Python >= 3.11 and the standard library alone; does nothing for what is there.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
FOLDER = ROOT / "build" / "agents"
PYTHONS = ("agents", "crewai")
"""CrewAI wants older versions of what the others use."""
JS = "js"


def python(name: str) -> Path:
    """The interpreter of one environment."""
    return FOLDER / name / "bin" / "python"


def _wanted(name: str) -> str:
    files = sorted((HERE / "js").glob("package*.json")) if name == JS else [HERE / "locked" / f"{name}.txt"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def complete(name: str) -> bool:
    """Whether these versions are installed."""
    installed = FOLDER / name / "installed"
    return installed.exists() and installed.read_text() == _wanted(name)


def set_up(name: str) -> None:
    """Install one of them unless it is there. Raises ``OSError`` or ``CalledProcessError``."""
    if complete(name):
        return
    folder = FOLDER / name
    if name == JS:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in (HERE / "js").glob("package*.json"):
            shutil.copy(file, folder)
        subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
    else:
        venv.create(folder, with_pip=True, clear=True)
        uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
        install = (
            [uv, "pip", "install", "-q", "--python", python(name)]
            if uv
            else [python(name), "-m", "pip", "install", "-q"]
        )
        subprocess.run([*install, "--requirement", HERE / "locked" / f"{name}.txt"], check=True)
    (folder / "installed").write_text(_wanted(name))


def main() -> int:
    """All of them, at once; 1 when one could not be made."""
    missing = [name for name in (*PYTHONS, JS) if not complete(name)]
    if not missing:
        return 0
    sys.stderr.write(f"setting up {', '.join(missing)} in {FOLDER} for the tests with real agents (about 1 GB)\n")
    failed = 0
    with ThreadPoolExecutor(len(missing)) as pool:
        for name, done in [(name, pool.submit(set_up, name)) for name in missing]:
            try:
                done.result()
            except (OSError, subprocess.CalledProcessError) as error:
                sys.stderr.write(f"{name} could not be set up: {error}\n")
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
