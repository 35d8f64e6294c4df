"""Addresses that nobody would write, and stores that are not as they should be: every page stands."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app import period_sample, sample
from tests.app.pages import opened, said
from tests.store.rows import fill, turn
from turnscope_app import data

PAGES = {
    "home": ("period", "application"),
    "sessions": (
        *("text", "period", "sort", "check", "page", "part", "share", "longer", "path", "reason", "suspicion"),
        *("applications", "agents", "models", "deployments", "engines"),
    ),
    "session": ("turn", "page", "details"),
    "reuse": ("period", "model", "application", "axis"),
    "retention": ("period", "model", "application", "unit"),
    "tools": ("period", "model", "application"),
    "suspicions": ("period", "model", "application", "kind", "session"),
    "about": ("period", "model", "application"),
    "runbooks": ("file",),
}
"""What each takes from its address."""
STRANGE = {
    "empty": "",
    "a script": "<script>document.title='pwned'</script>",
    "a number": "-1",
    "a huge number": "9" * 400,
    "no number": "NaN",
    "right to left": "\u202e\u2067egnirts",
    "a control character": "a\x00b\x1b[31m",
    "long": "x" * 10_000,
    "another folder": "../../../../etc/passwd",
    "SQL": "' OR 1=1; --",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    period_sample.write(str(folder))
    return folder


@pytest.mark.parametrize("strange", STRANGE.values(), ids=list(STRANGE))
@pytest.mark.parametrize("page", PAGES)
def test_a_page_stands_whatever_its_address_asks_for(
    page: str, strange: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {f"{page}_{name}": strange for name in PAGES[page]}
    if page == "session":
        asked["id"] = strange
    at = opened(page, store, monkeypatch, **asked, nobody_knows=strange)
    assert not at.exception
    assert at.title
    assert "\u202e" not in said(at)
    assert "\x00" not in said(at)


@pytest.mark.parametrize("page", PAGES)
def test_thousands_of_values_are_no_more_than_one(page: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened(page, store, monkeypatch)
    for name in PAGES[page]:
        at.query_params[f"{page}_{name}"] = [str(number) for number in range(5_000)]
    at.run()
    assert not at.exception


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "7", "9" * 30, "one", ""])
@pytest.mark.parametrize("of", ["session_turn", "session_page"])
def test_a_turn_or_a_page_that_there_is_not_opens_the_session(
    of: str, number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, *(turn(index, session_id="long") for index in range(1, 251)))
    at = opened("session", tmp_path, monkeypatch, id="long", **{of: number})
    assert not at.exception
    assert at.title[0].value == "long"


Spoil = Callable[[Path], None]


def _half_written(store: Path) -> None:
    """Every second Parquet file ends in its middle."""
    for file in sorted(store.rglob("*.parquet"))[::2]:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _without_files(store: Path) -> None:
    """The manifests list files that are gone."""
    for file in store.rglob("*.parquet"):
        file.unlink()


def _torn_manifests(store: Path) -> None:
    for file in (store / "manifests").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-20])


def _empty_manifests(store: Path) -> None:
    for file in (store / "manifests").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")


@pytest.mark.parametrize("spoil", [_half_written, _without_files, _torn_manifests, _empty_manifests])
@pytest.mark.parametrize("page", [page for page in PAGES if page != "runbooks"])
def test_a_store_that_is_half_there_is_said_so_and_shown_again_once_it_is_mended(
    page: str, spoil: Spoil, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiled = tmp_path / "store"
    shutil.copytree(store, spoiled)
    spoil(spoiled)
    asked = {"id": "agent-1"} if page == "session" else {}
    at = opened(page, spoiled, monkeypatch, **asked)
    assert not at.exception
    assert at.error or at.info
    shutil.rmtree(spoiled)
    shutil.copytree(store, spoiled)
    data._version.clear()
    at.run()
    assert not at.exception
    assert not at.error


def test_a_store_that_goes_while_it_is_looked_at_and_comes_back_is_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.write(str(tmp_path / "store"))
    at = opened("sessions", tmp_path / "store", monkeypatch)
    assert not at.exception
    (tmp_path / "store").rename(tmp_path / "away")
    at.run()
    assert not at.exception
    (tmp_path / "away").rename(tmp_path / "store")
    at.run()
    assert "8 sessions." in said(at)
