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
from turnscope.model import shown

HELP: Final = f"""\
Usage: turnscope run SCRIPT [ARGS]...
       turnscope run -m MODULE [ARGS]...
       turnscope run COMMAND [ARGS]...

  Run a Python proxy with the hook around it: what each client request did at the proxy, and its session, then reach the
  sidecar. Nothing in the proxy is changed, and its answers stay as they are, byte by byte.

  SCRIPT is a file, MODULE what "python -m" takes, COMMAND a Python program on the PATH, such as uvicorn. It runs as it
  would without turnscope, with all ARGS; processes that it starts are watched too.

  {ENDPOINT}=grpc://127.0.0.1:4317 turnscope run proxy.py --port 8000

  {ENDPOINT} says where the sidecar ('turnscope serve') listens; without it the script runs unwatched.
  Spans go to your own backend when OTEL_* variables name one, or when the proxy sets a tracer provider.

Options:
  -h, --help  Show this message and exit.
"""
AUTOLOAD: Final = Path(turnscope.proxy.__file__).parent / "autoload"
_ARCHIVE: Final = b"PK"
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
        complaint = f"cannot start {shown(arguments[0])} ({error.strerror}): is it a Python script or a program?"
    except (RunError, SettingsError) as error:
        complaint = str(error)
    sys.stderr.write(f"turnscope: {complaint}\n")
    return 2


def command_line(arguments: Sequence[str]) -> list[str]:
    """The program to start and its arguments. RunError when there is none."""
    module = arguments[:1] == ["-m"]
    if not (arguments[1:2] if module else arguments[:1]) or not arguments[int(module)].strip():
        raise RunError("run needs the script to run, e.g. turnscope run proxy.py --port 8000")
    script = arguments[0]
    if module:
        return [sys.executable, *arguments]
    if _exists(script):
        _check_script(script)
        return [sys.executable, *arguments]
    # As in an activated environment: the commands beside this Python first.
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    program = None if os.sep in script else shutil.which(script, path=places)
    if program is None:
        raise RunError(f"there is no file {shown(script)} in {Path.cwd()} and no such command: check the path")
    return [program, *arguments[1:]]


def _exists(script: str) -> bool:
    try:
        return Path(script).exists()
    except OSError:  # too long to be a path
        return False


def _check_script(script: str) -> None:
    """RunError when Python cannot run what is there: it takes scripts, archives, and folders with a main program."""
    path = Path(script).absolute()
    if path.is_dir():
        if not (path / "__main__.py").is_file():
            raise RunError(f"{path} is a folder and has no __main__.py: name the script in it")
        return
    try:
        with path.open("rb") as file:
            begin = file.read(1024)
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}): check its permissions") from None
    if b"\0" in begin and not begin.startswith(_ARCHIVE) and path.suffix != ".pyc":
        raise RunError(f"{path} is no Python script: name the proxy's script, or a command on the PATH")


def with_hook(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which Python loads the hook by itself. SettingsError when a setting is wrong."""
    changed = dict(environment)
    if read(environment) is None:
        sys.stderr.write(f"turnscope: {ENDPOINT} is not set, so nothing is watched: running the script as it is\n")
        return changed
    paths = [str(AUTOLOAD)]
    if _OTEL_AUTO in sys.modules:
        # opentelemetry-instrument has loaded itself into this process only, and taken its path away behind it.
        paths.append(str(Path(str(sys.modules[_OTEL_AUTO].__file__)).parent))
    if environment.get("PYTHONPATH"):
        paths.append(environment["PYTHONPATH"])
    changed["PYTHONPATH"] = os.pathsep.join(paths)
    return changed
