"""Make the environment of the trace backend that tests send to: Arize Phoenix, in ``build/phoenix``.

Runs with any Python >= 3.11 and the standard library alone; does nothing when the environment is there. Its own,
since its dependencies clash with ours.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build" / "phoenix"
PHOENIX = "arize-phoenix==20.26.1"


def command(folder: Path = FOLDER) -> Path:
    """Phoenix's own command; it exists once the environment is complete."""
    return folder / "bin" / "phoenix"


def set_up(folder: Path = FOLDER) -> None:
    """Install Phoenix unless this version is there. Raises ``CalledProcessError`` when it cannot be had."""
    done = folder / "installed"
    if command(folder).exists() and done.exists() and done.read_text() == PHOENIX:
        return
    sys.stderr.write(f"setting up {PHOENIX} in {folder} for the trace tests (about 600 MB)\n")
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    install = [uv, "pip", "install", "--quiet", "--python", python] if uv else [python, "-m", "pip", "install", "-q"]
    subprocess.run([*install, PHOENIX], check=True)
    # Else every start compiles all of it where PYTHONDONTWRITEBYTECODE is set.
    subprocess.run([python, "-m", "compileall", "-q", folder / "lib"], check=False)
    done.write_text(PHOENIX)


if __name__ == "__main__":
    try:
        set_up()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"Phoenix could not be set up in {FOLDER}: {error}")
