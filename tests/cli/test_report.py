"""``turnscope report``: a whole file or none, and one sentence where it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.app import agent_session
from tests.store.rows import fill, turn
from turnscope.cli import report as command
from turnscope.cli.errors import Sorry
from turnscope.cli.main import main


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    fill(folder, *agent_session.desk_agent())
    fill(folder, turn(99, session_id="desk-lamp"))
    return folder


def _run(*arguments: str) -> int:
    return main(["report", *arguments])


def test_the_file_is_written_whole_where_it_is_asked_for(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.html"
    out.write_text("old")
    assert _run("desk-agent", "--store", str(store), "-o", str(out)) == 0
    assert capsys.readouterr().out == f"Written: {out}\n"
    page = out.read_text()
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert [p.name for p in tmp_path.iterdir() if p.name not in ("store", "out.html")] == []


def test_without_a_name_it_is_named_after_the_session(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _run("lamp", "--store", str(store)) == 0
    assert (tmp_path / "turnscope-desk-lamp.html").is_file()


def test_an_unknown_session_and_one_that_is_not_meant_alone_are_told(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.html"
    assert _run("nobody", "--store", str(store), "-o", str(out)) == 2
    assert "there is no session 'nobody' in" in capsys.readouterr().err
    assert _run("desk", "--store", str(store), "-o", str(out)) == 2
    assert "2 ids contain it, as 'desk-" in capsys.readouterr().err
    assert not out.exists()


def test_a_missing_store_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("x", "--store", str(tmp_path / "none"), "-o", str(tmp_path / "o")) == 2
    assert "there is no turnscope store at" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_told_and_nothing_is_left(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("lamp", "--store", str(store), "-o", str(tmp_path)) == 2
    assert "is a folder: name a file in it" in capsys.readouterr().err
    assert _run("lamp", "--store", str(store), "-o", str(tmp_path / "none" / "o.html")) == 2
    assert "cannot be written (No such file or directory)" in capsys.readouterr().err
    assert _run("lamp", "--store", str(store), "-o", "") == 2
    (tmp_path / "file").touch()
    assert _run("lamp", "--store", str(store), "-o", str(tmp_path / "file" / "o.html")) == 2
    (tmp_path / "file").unlink()
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_report_that_fails_half_way_leaves_the_old_one(tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    out.write_text("old")
    with pytest.raises(Sorry, match="cannot be written"):
        command.write(out, "half \ud800")
    assert out.read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


def test_the_help_says_what_a_newcomer_needs() -> None:
    import typer

    app = typer.Typer()
    app.command()(command.report)
    said = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    assert "single HTML file" in said
    assert "asks nothing of the network" in said
