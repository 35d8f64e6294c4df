"""Running something on a module when it is imported, without importing it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from turnscope.emit.after_import import after_import


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package ``late_<n>`` with a module ``part`` that nobody has imported."""
    name = f"late_{tmp_path.name.replace('-', '_')}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / name / "part.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    return name


def test_it_runs_once_right_after_the_module_and_imports_nothing_itself(package: str) -> None:
    seen: list[ModuleType] = []
    after_import(f"{package}.part", seen.append)
    assert package not in sys.modules
    module = __import__(f"{package}.part", fromlist=["VALUE"])
    assert seen == [module]
    assert module.VALUE == 1
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__


def test_a_module_that_is_there_is_taken_at_once(package: str) -> None:
    module = __import__(f"{package}.part", fromlist=["VALUE"])
    seen: list[ModuleType] = []
    after_import(f"{package}.part", seen.append)
    assert seen == [module]


def test_asked_twice_it_runs_once_and_a_failing_module_fails_as_before(package: str, tmp_path: Path) -> None:
    seen: list[str] = []
    after_import(f"{package}.part", lambda _: seen.append("first"))
    after_import(f"{package}.part", lambda _: seen.append("second"))
    after_import(f"{package}.broken", lambda _: seen.append("broken"))
    (tmp_path / package / "broken.py").write_text("raise RuntimeError('own trouble')\n")
    __import__(f"{package}.part")
    with pytest.raises(RuntimeError, match="own trouble"):
        __import__(f"{package}.broken")
    assert seen == ["first"]


def test_asking_whether_a_module_could_be_imported_or_failing_to_leaves_it_wanted(package: str, tmp_path: Path) -> None:
    seen: list[ModuleType] = []
    after_import(f"{package}.part", seen.append)
    after_import(f"{package}.late", seen.append)
    asked = find_spec(f"{package}.part")
    assert asked is not None
    assert asked.loader is not None
    assert asked.loader.get_filename() == str(tmp_path / package / "part.py")  # type: ignore[attr-defined]
    (tmp_path / package / "late.py").write_text("raise ImportError('its own dependency is missing')\n")
    with pytest.raises(ImportError):
        __import__(f"{package}.late")
    assert seen == []
    (tmp_path / package / "late.py").write_text("VALUE = 2\n")
    part, late = (__import__(f"{package}.{name}", fromlist=["x"]) for name in ("part", "late"))
    assert seen == [part, late]
