"""The set-up of the engine environment, without making one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from live import setup


def test_a_step_is_done_once_and_again_when_its_inputs_change(tmp_path: Path) -> None:
    done: list[str] = []
    for inputs in ("torch==1", "torch==1", "torch==2"):
        setup._step(tmp_path, "torch", inputs, lambda inputs=inputs: done.append(inputs))  # type: ignore[misc]
    assert done == ["torch==1", "torch==2"]


def test_a_step_that_fails_is_repeated(tmp_path: Path) -> None:
    def fail() -> None:
        raise setup.SetupError("no network")

    done: list[int] = []
    with pytest.raises(setup.SetupError):
        setup._step(tmp_path, "torch", "x", fail)
    setup._step(tmp_path, "torch", "x", lambda: done.append(1))
    assert done == [1]


def test_what_cannot_be_installed_is_named_with_the_installers_last_words() -> None:
    with pytest.raises(setup.SetupError, match=r"^uv could not install nixl==0: no such version\. Is the package"):
        setup._run(
            [sys.executable, "-c", "raise SystemExit('resolving\\nno such version')"], "uv could not install nixl==0"
        )
