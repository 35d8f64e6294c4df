"""How this command is typed where the user is, for commands that are printed to be pasted."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def turnscope() -> str:
    """``turnscope`` where the shell finds this very program by that name; else the path to it, from the working folder
    if it is below that (``.venv/bin/turnscope``)."""
    program = Path(sys.argv[0])
    if program.name != "turnscope":  # started in another way: the command stands beside its Python
        program = Path(sys.executable).with_name("turnscope")
    found = shutil.which("turnscope")
    if found is not None and os.path.realpath(found) == os.path.realpath(program):
        return "turnscope"
    # Not resolved: what an environment's Python links to has no turnscope beside it.
    whole = Path(os.path.abspath(program))  # noqa: PTH100
    folder = Path.cwd()
    return shlex.quote(str(whole.relative_to(folder) if whole.is_relative_to(folder) else whole))
