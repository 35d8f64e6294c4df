"""Make the folder of JavaScript parts that tests use: Grafana's own types and grammar, and axe, in ``build/node``.

Runs with any Python >= 3.11 and the standard library alone, and needs ``node`` and ``npm``; a second run does nothing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "node"
PACKAGES = {
    "@grafana/lezer-traceql": "1.0.0",
    "@grafana/schema": "11.6.16",
    "@lezer/lr": "1.4.2",
    "ajv": "8.17.1",
    "axe-core": "4.13.0",
    "ts-json-schema-generator": "2.3.0",
    "typescript": "5.9.3",
}
TYPESCRIPT = {"compilerOptions": {"module": "nodenext", "moduleResolution": "nodenext", "skipLibCheck": True}}


def complete() -> bool:
    """Whether these versions are installed."""
    done = FOLDER / "installed.json"
    return done.exists() and json.loads(done.read_text()) == PACKAGES


def set_up() -> None:
    """Install them unless they are there. Raises ``OSError`` or ``CalledProcessError``."""
    if complete():
        return
    sys.stderr.write(f"setting up {', '.join(PACKAGES)} in {FOLDER} for tests (about 45 MB)\n")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (FOLDER / "package.json").write_text(json.dumps({"private": True, "dependencies": PACKAGES}))
    (FOLDER / "tsconfig.json").write_text(json.dumps(TYPESCRIPT))
    npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--cache", FOLDER / "cache"]
    subprocess.run(npm, cwd=FOLDER, check=True)
    (FOLDER / "installed.json").write_text(json.dumps(PACKAGES))


def run(script: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """A script of this folder, with these parts."""
    set_up()
    return subprocess.run(
        ["node", Path(__file__).with_name(script), *arguments],
        cwd=FOLDER,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


if __name__ == "__main__":
    try:
        set_up()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"what tests need could not be set up in {FOLDER}: {error}")
