"""Commands that are printed to be pasted begin with what the shell finds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from turnscope.cli import typed


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command in an environment below the working folder, started by its path."""
    program = tmp_path / ".venv" / "bin" / "turnscope"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setattr(sys, "argv", [".venv/bin/turnscope", "demo"])
    return program


def test_in_an_environment_that_is_not_activated_it_is_the_path_from_here(program: Path) -> None:
    assert program.exists()
    assert typed.turnscope() == ".venv/bin/turnscope"


def test_where_the_shell_finds_it_by_name_it_is_the_name(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    assert typed.turnscope() == "turnscope"


def test_where_the_shell_finds_another_one_of_that_name_it_is_the_path(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other" / "turnscope"
    other.parent.mkdir()
    other.write_bytes(program.read_bytes())
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert typed.turnscope() == ".venv/bin/turnscope"


def test_from_elsewhere_it_is_the_whole_path_quoted_for_a_shell(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaced = tmp_path / "my tools" / "turnscope"
    spaced.parent.mkdir()
    program.rename(spaced)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "argv", [str(spaced), "demo"])
    assert typed.turnscope() == f"'{spaced}'"


def test_started_as_a_module_it_is_the_command_beside_its_python(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/main.py"])
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    assert typed.turnscope() == ".venv/bin/turnscope"
