"""How fast a session file of 1 GB is imported, and in how much memory: one process, as ``turnscope import`` is."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

SIZE: Final = 10**9
TARGET_MB: Final = 300
_PROGRAM: Final = """
import pathlib, re, sys
from turnscope.cli.main import main
code = main(["import", "claude-code", sys.argv[1], "--store", sys.argv[2], "--json"])
# Not ru_maxrss: a child begins with its parent's.
print(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1], file=sys.stderr)
sys.exit(code)
"""


def write_sessions(path: Path, size: int, rng: random.Random) -> None:
    """Sessions of Claude Code of together ``size`` bytes: answers that ask for tools, and results of some kilobytes."""
    text = "".join(rng.choices("abcdefghij \\n{}", k=200_000)).replace("\\", "\\\\").replace("\n", "\\n")
    with path.open("w") as out:
        number = at = 0
        while out.tell() < size:
            number += 1
            at += rng.randrange(60)
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_791_795_600 + at))
            common = f'"sessionId":"s{number // 400}","version":"2.1","timestamp":"{stamp}"'
            usage = (
                f'{{"input_tokens":3,"cache_read_input_tokens":{number % 400 * 500},"output_tokens":{number % 300}}}'
            )
            begin = rng.randrange(100_000)
            block = f'{{"type":"tool_use","id":"t{number}","name":"Bash","input":{{"command":"ls"}}}}'
            answer = f'"message":{{"id":"m{number}","model":"m","content":[{block}],"usage":{usage}}}'
            out.write(f'{{"type":"assistant",{common},"uuid":"a{number}","requestId":"r{number}",{answer}}}\n')
            said = text[begin : begin + rng.randrange(500, 8_000)].rstrip("\\")
            result = f'{{"type":"tool_result","tool_use_id":"t{number}","content":{json.dumps(said)}}}'
            out.write(f'{{"type":"user",{common},"uuid":"u{number}","message":{{"content":[{result}]}}}}\n')


def rows(size: int = SIZE) -> list[dict[str, Any]]:
    """For ``make bench``."""
    with tempfile.TemporaryDirectory(prefix="turnscope-bench-") as folder:
        path = Path(folder) / "sessions.jsonl"
        write_sessions(path, size, random.Random(7))
        began = time.monotonic()
        command = [sys.executable, "-c", _PROGRAM, str(path), str(Path(folder) / "store")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.monotonic() - began
        stored = sum(json.loads(done.stdout)["files"][0]["rows"].values())
        memory = int(re.findall(r"\d+", done.stderr)[-1]) / 1024
        name = f"import: {path.stat().st_size / 1e9:.2g} GB of sessions"
    return [
        _row(f"{name}, resident memory at most", round(memory), "MB", f"< {TARGET_MB}", memory < TARGET_MB),
        _row(f"{name}, throughput", round(size / 1e6 / seconds, 1), "MB/s", None, None),
        _row(f"{name}, rows", round(stored / seconds), "rows/s", None, None),
    ]


def _row(name: str, value: float, unit: str, target: str | None, ok: bool | None) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "target": target, "ok": ok, "n": 1, "spread": None}


if __name__ == "__main__":
    for one in rows(int(float(sys.argv[1])) if sys.argv[1:] else SIZE):
        print(one)
