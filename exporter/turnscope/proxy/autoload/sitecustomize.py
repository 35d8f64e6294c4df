"""Run by Python itself at the start of every process below ``turnscope run``, before the script.

Leaves word for the hook, then hands on to the ``sitecustomize`` that this one hides, if there is one.
"""

import contextlib
import importlib
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent

try:
    from turnscope.proxy.install import install

    install()
except Exception as error:
    sys.stderr.write(f"turnscope: this process is not watched: {error!r} in {sys.executable}\n")

sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != _HERE]
_this = sys.modules.pop(__name__, None)
with contextlib.suppress(ModuleNotFoundError):
    importlib.import_module("sitecustomize")
if _this is not None:
    sys.modules.setdefault(__name__, _this)
