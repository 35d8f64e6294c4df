"""What is installed from the lock is what the project asks for, and the lock names no place to get it from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]


def _wanted() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    return [r for group in groups for r in map(Requirement, group) if r.name != "turnscope"]


def _locked() -> dict[str, list[Version]]:
    found: dict[str, list[Version]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", (ROOT / "requirements.lock").read_text(), re.M):
        found.setdefault(canonicalize_name(name), []).append(Version(version))
    return found


def test_the_lock_holds_a_fitting_version_of_every_dependency() -> None:
    locked = _locked()
    missing = [
        str(wanted)
        for wanted in _wanted()
        if not any(
            wanted.specifier.contains(v, prereleases=True) for v in locked.get(canonicalize_name(wanted.name), [])
        )
    ]
    assert missing == [], "run 'make lock'"


def test_the_lock_names_no_index_host_or_path() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pinned = re.compile(r"[A-Za-z0-9._-]+==\S+( ; .+)?|    # via.*|    #   \S.*|# .*|#    make lock")
    assert [line for line in lines if not pinned.fullmatch(line)] == []
    assert [line for line in lines if "://" in line or " @ " in line or "--" in line] == []
