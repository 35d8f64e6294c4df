"""Run a function on a module when somebody else imports it, so that we never import it ourselves."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Then = Callable[[ModuleType], None]


def after_import(name: str, then: Then) -> None:
    """Call ``then(module)`` once: now if ``name`` is there, else once it has been loaded. ``then`` never raises."""
    module = sys.modules.get(name)
    if module is not None:
        then(module)
        return
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            finder.wanted.setdefault(name, then)
            return
    sys.meta_path.insert(0, _Finder({name: then}))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds wanted modules as usual, and gives their loader a last step."""

    def __init__(self, wanted: dict[str, Then]) -> None:
        self.wanted = wanted

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.wanted:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.wanted)
        return spec


class _Loader(importlib.abc.Loader):
    """The usual loader and the last step; everything else it has stays reachable.

    The module stays wanted until it has been loaded: many only ask whether it could be, and an import can fail.
    """

    def __init__(self, loader: Any, wanted: dict[str, Then]) -> None:
        self._loader = loader
        self._wanted = wanted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        then = self._wanted.pop(module.__name__, None)
        if then is not None:
            then(module)
