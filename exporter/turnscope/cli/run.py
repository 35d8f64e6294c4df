"""``turnscope run SCRIPT ARGS...``: a Python proxy, unchanged, with the hook around it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import turnscope.proxy
from turnscope.emit.settings import ENDPOINT, SettingsError, read

HELP: Final = f"""\
Usage: turnscope run SCRIPT [ARGS]...
       turnscope run -m MODULE [ARGS]...
       turnscope run COMMAND [ARGS]...

  Run a Python proxy with the hook around it. SCRIPT is a file, MODULE what "python -m" takes, COMMAND a Python
  program on the PATH, such as uvicorn. It runs as it would without turnscope; processes it starts are watched too.

  {ENDPOINT}, e.g. grpc://127.0.0.1:4317, says where the sidecar listens; without it the script runs unwatched.
  Spans go to your own backend when OTEL_* variables name one, or when the proxy sets a tracer provider.
"""
AUTOLOAD: Final = Path(turnscope.proxy.__file__).parent / "autoload"
_OTEL_AUTO: Final = "opentelemetry.instrumentation.auto_instrumentation"


class RunError(Exception):
    """One sentence: what, where, what to do."""


def main(arguments: Sequence[str]) -> int:
    """Become the script. Returns only when that is not possible, with the exit code."""
    if arguments and arguments[0] in ("-h", "--help"):
        sys.stdout.write(HELP)
        return 0
    try:
        command = command_line(arguments)
        environment = with_hook(os.environ)
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(command[0], command, environment)
    except OSError as error:
        complaint = f"cannot start {arguments[0]} ({error.strerror}): is it a Python script or a program?"
    except (RunError, SettingsError) as error:
        complaint = str(error)
    sys.stderr.write(f"turnscope: {complaint}\n")
    return 2


def command_line(arguments: Sequence[str]) -> list[str]:
    """The program to start and its arguments. RunError when there is none."""
    if not arguments or arguments == ["-m"]:
        raise RunError("run needs the script to run, e.g. turnscope run proxy.py --port 8000.")
    script = arguments[0]
    if script == "-m" or Path(script).exists():
        return [sys.executable, *arguments]
    # As in an activated environment: the commands beside this Python first.
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    program = None if os.sep in script else shutil.which(script, path=places)
    if program is None:
        raise RunError(f"there is no file {Path(script).absolute()} and no command {script}: check the path.")
    return [program, *arguments[1:]]


def with_hook(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which Python loads the hook by itself. SettingsError when a setting is wrong."""
    changed = dict(environment)
    if read(environment) is None:
        sys.stderr.write(f"turnscope: {ENDPOINT} is not set, so nothing is watched; running the script as it is.\n")
        return changed
    paths = [str(AUTOLOAD)]
    if _OTEL_AUTO in sys.modules:
        # opentelemetry-instrument has loaded itself into this process only, and taken its path away behind it.
        paths.append(str(Path(str(sys.modules[_OTEL_AUTO].__file__)).parent))
    if environment.get("PYTHONPATH"):
        paths.append(environment["PYTHONPATH"])
    changed["PYTHONPATH"] = os.pathsep.join(paths)
    return changed
