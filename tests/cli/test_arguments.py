"""What people type wrong: one sentence, exit code 2, nothing written."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from turnscope.cli.main import COMMANDS, LIGHT, build, main
from turnscope.cli.sidecar import Sidecar
from turnscope.config import Settings

HUGE = "x" * 5000
NOT_UTF8 = os.fsdecode(b"a\xff\xfeb")
FREE = ["--http", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0"]
MAY_BE_EMPTY = {"engine-names", "engine-metrics", "export-otlp-headers", "export-spans-headers"}
SERVE = [name.replace("_", "-") for name in Settings.model_fields]


def _started(self: Sidecar) -> None:
    self.close()
    raise AssertionError("the sidecar took it and started")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home and working folder but for a file and a folder; a sidecar that would start fails the test."""
    (tmp_path / "file").write_text("hello\n")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("TURNSCOPE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(Sidecar, "start", _started)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield tmp_path
    for number, handler in handlers.items():
        signal.signal(number, handler)


def told(place: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence, which begins in small letters or with the argument's name and has no full stop; nothing is
    written but perhaps an empty journal."""
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("turnscope: ")
    assert err.count("\n") == 1
    assert len(err) < 600
    assert "Errno" not in err
    assert "Error" not in err
    assert "Value error" not in err
    begin, end = err.split()[1], err.rstrip()[-1]
    assert begin == begin.lower() or begin.isupper() or "/" in begin
    assert end != "."
    written = {p for p in place.rglob("*") if p.is_file() and p.name != "lock"}
    assert written == {place / "file"}
    return err.removeprefix("turnscope: ").rstrip("\n")


@pytest.mark.parametrize("option", [o for o in SERVE if o not in MAY_BE_EMPTY])
def test_an_empty_setting_is_not_the_default(place: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    for value in ("", "  "):
        assert told(place, capsys, "serve", *FREE, f"--{option}", value) == (
            f"--{option}: it is empty: leave it out, or give it a value; see 'turnscope serve --help'"
        )


@pytest.mark.parametrize("option", SERVE)
@pytest.mark.parametrize("value", [HUGE, NOT_UTF8], ids=["huge", "not-utf8"])
def test_a_setting_that_cannot_be_meant_is_named(
    place: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    assert told(place, capsys, "serve", *FREE, f"--{option}", value).startswith(f"--{option}: ")


@pytest.mark.parametrize(
    ("option", "value", "part"),
    [
        ("data-dir", "file", "the journal in file/journal cannot be written (Not a directory): check that path or"),
        ("store", "file", "(Not a directory): check the path, or choose another store (--store)"),
        ("store", "ftp://x", "use a local folder or s3://bucket/folder (--store)"),
        ("store", "s3://", "names no bucket"),
        ("record", "folder", "the recording folder cannot be written (Is a directory): choose another file"),
        ("export-otlp", "file", "--export-otlp: 'file' is not an OTLP endpoint"),
    ],
)
def test_a_place_of_the_wrong_kind_is_named(
    place: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, part: str
) -> None:
    assert part in told(place, capsys, "serve", *FREE, "--data-dir", "d", f"--{option}", value)


OTHERS: list[tuple[list[str], str]] = [
    (["replay", ""], "FILE: it is empty"),
    (["replay", "folder"], "FILE: folder is a folder: name a file in it"),
    (["replay", "gone"], "FILE: 'gone' cannot be read (No such file or directory)"),
    (["replay", "file/x"], "FILE: 'file/x' cannot be read (Not a directory)"),
    (["replay", "file"], "file is not a recording, see line 1 (not JSON"),
    (["replay", "y" * 900], "cannot be read (File name too long)"),
    (["replay", HUGE], f"FILE: '{'x' * 40}...' (5000 characters) is too long"),
    (["replay", NOT_UTF8], "FILE: 'a\\udcff\\udcfeb' is not UTF-8 text"),
    (["why", "", "file"], "A: it is empty"),
    (["why", NOT_UTF8, "file"], "A: 'a\\udcff\\udcfeb' is not UTF-8 text"),
    (["demo", ""], "FILE: it is empty"),
    (["demo", "--check", ""], "FILE: it is empty"),
    (["demo", "folder"], "FILE: folder is a folder"),
    (["demo", "--check", "gone"], "FILE: 'gone' cannot be read"),
    (["demo", "--check", "file"], "file.counters.json cannot be read (No such file or directory)"),
    (["demo", NOT_UTF8], "is not UTF-8 text"),
    (["demo", HUGE], "is too long"),
    (["assets", ""], "DIR: it is empty"),
    (["assets", "file"], "file cannot be written ("),
    (["assets", NOT_UTF8], "DIR: 'a\\udcff\\udcfeb' is not UTF-8 text"),
    (["assets", HUGE], "is too long"),
    (["serve", "--engine-metrics", "d"], "'d' is not of the form NAME=URL"),
    (["serve", "--engine-metrics", "d=ftp://x"], "'ftp://x' is not an address of metrics: write it like http://host"),
    (["serve", "--engine-metrics", ",".join(f"d{n}=http://h" for n in range(65))], "reads at most 64"),
    (["serve", "--trace-ratio", "2"], "'2' is not possible, it must be at most 1"),
    (["explore", "--store", ""], "--store: it is empty"),
    (["explore", "--store", "file"], "(it is a file and no folder): check the path, or choose another store"),
    (["explore", "--store", "folder"], "there is no turnscope store at folder"),
    (["explore", "--store", "gone"], "there is no turnscope store at gone"),
    (["explore", "--store", HUGE], "--store: '" + "x" * 40),
    (["explore", "--store", NOT_UTF8], "--store: 'a\\udcff\\udcfeb' is not UTF-8 text"),
    (["explore", "--store", "ftp://x"], "use a local folder or s3://bucket/folder"),
    (["explore", "--origin", "ftp://x"], "--origin ftp://x: give it as https://host or https://host:port"),
    (["explore", "--origin", "https://x/path"], "--origin https://x/path: give it as"),
    (["explore", "--session-label", "x"], "--session-label x: give it as APPLICATION=TEMPLATE"),
    (["explore", "--session-link", "desk=http://x/{session}"], "it has to begin with https://"),
    (["explore", "--trace-link", "x"], "--trace-link: 'x' cannot be a link to traces"),
    *((["explore", "--port", v], "--port: '") for v in ("", "file", "0", "65536", "-1", "1.5", "²", HUGE, NOT_UTF8)),
    *(
        (["doctor", "--address", v], "--address: '")
        for v in ("", "file", "h:1", "http://", "http://h:0", HUGE, NOT_UTF8)
    ),
    (["doctor", "--address", "http://[::1"], "--address: 'http://[::1' is not an address: write it like http://127"),
    (
        ["doctor", "--address", "http://127.0.0.1:9"],
        "no sidecar answers at http://127.0.0.1:9/status (Connection refused)",
    ),
    *((["replay", "file", "--to", v], "--to: '") for v in ("", "file", "h", "ftp://h:1", "h:1/x", HUGE, NOT_UTF8)),
    *(
        (["replay", "file", "--speed", v], "--speed: '")
        for v in ("", "fast", "nan", "inf", "-1", "1e400", HUGE, NOT_UTF8)
    ),
    *(
        (["replay", "file", "--wait", v], "--wait: '")
        for v in ("", "long", "nan", "inf", "-1", "1e400", HUGE, NOT_UTF8)
    ),
    *((["replay", "file", "--address", v], "--address: '") for v in ("", "file", HUGE, NOT_UTF8)),
    (["import", "", "file"], "KIND: there is no kind '': choose from"),
    (["import", "codex", ""], "FILE: it is empty"),
    (["import", "codex", "folder"], "FILE: folder is a folder: name a file in it"),
    (["import", "codex", "file"], "file is not of kind codex: nothing in its first 100 lines is of that kind"),
    (["import", "codex", "file", "--store", ""], "--store: it is empty"),
    (["import", "vllm-benchmark", "file", "--run", ""], "--run: it is empty"),
    (["import", "codex"], "see 'turnscope import --help'"),
    (["compare", "", "b"], "RUN_A: it is empty"),
    (["compare", "a", NOT_UTF8], "RUN_B: 'a\\udcff\\udcfeb' is not UTF-8 text"),
    (["compare", "a", "b", "--store", "gone"], "there is no turnscope store at gone"),
    (["sessions", "--store", ""], "--store: it is empty"),
    *(
        (["sessions", name, "x"], f"invalid value for '{name}': 'x' is not one of ")
        for name in ("--path", "--reason", "--suspicion", "--status", "--transport")
    ),
    *((["sessions", "--first-token", v], "--first-token: '") for v in ("x", "-1s", "nan", HUGE, NOT_UTF8)),
    (["sessions", "--engine", "", "--store", "gone"], "--engine: it is empty"),
    (["report", "", "--store", "gone"], "SESSION: it is empty"),
    (["report", "x", "--store", "gone"], "there is no turnscope store at gone"),
    (["report", "x", "--output", ""], "--output: it is empty"),
    (["assets", "d", "--runbooks", "x"], "--runbooks: 'x' is no address"),
    (["assets", "d", "--explorer", "x"], "--explorer: 'x' is no address"),
    (["sessions", "--store", "gone"], "there is no turnscope store at gone"),
    *(
        (["sessions", name, v], f"{name}: ")
        for name in ("--text", "--model", "--application", "--agent", "--deployment")
        for v in ("", NOT_UTF8)
    ),
    (["sessions", "--outcome", ""], "see 'turnscope sessions --help'"),
    (["sessions", "--outcome", "fine"], "see 'turnscope sessions --help'"),
    *((["sessions", "--spent", v], "--spent: ") for v in ("", "lunch", "tools:101", "tools:x", HUGE, NOT_UTF8)),
    *((["sessions", "--since", v], "--since: ") for v in ("", "soon", "7w", "-1h", "²d", HUGE, NOT_UTF8)),
    (["sessions", "--sort", "beauty"], "see 'turnscope sessions --help'"),
    *((["sessions", "--limit", v], "--limit: ") for v in ("", "0", "many", "nan", HUGE, NOT_UTF8)),
    (["show", ""], "SESSION: it is empty"),
    (["show", NOT_UTF8], "SESSION: 'a\\udcff\\udcfeb' is not UTF-8 text"),
    (["show", "x", "--store", ""], "--store: it is empty"),
    (["show", "x", "--store", "gone"], "there is no turnscope store at gone"),
    (["show", "x", "--limit", "0"], "--limit: "),
    (["show"], "see 'turnscope show --help'"),
    (["run"], "run needs the script to run"),
    (["run", ""], "run needs the script to run"),
    (["run", "-m"], "run needs the script to run"),
    (["run", "-m", ""], "run needs the script to run"),
    (["run", "folder"], "folder is a folder and has no __main__.py: name the script in it"),
    (["run", "gone.py"], "there is no file 'gone.py' in "),
    (["run", HUGE], "(5000 characters)"),
    (["run", NOT_UTF8], "there is no file 'a\\udcff\\udcfeb' in "),
    (["run", "/bin/true"], "/bin/true is no Python script"),
    (["nonsense"], "no such command 'nonsense': see 'turnscope --help'"),
    (["session"], "no such command 'session': did you mean 'sessions'? Or see 'turnscope --help'"),
    ([""], "no such command '': see 'turnscope --help'"),
    (["--nonsense"], "see 'turnscope --help'"),
    (["serve", "extra"], "see 'turnscope serve --help'"),
    (["serve", "--nonsense"], "see 'turnscope serve --help'"),
    (["replay"], "see 'turnscope replay --help'"),
    (["replay", "a", "b"], "see 'turnscope replay --help'"),
    (["doctor", "--json=1"], "does not take a value: see 'turnscope"),
]


@pytest.mark.parametrize(("arguments", "part"), OTHERS, ids=[" ".join(a)[:60] for a, _ in OTHERS])
def test_one_sentence_says_what_is_wrong(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], part: str
) -> None:
    assert part in told(place, capsys, *arguments)


def test_no_option_or_argument_that_takes_a_value_is_left_out() -> None:
    options = {f"{command[0]} {word}" for command, _ in OTHERS for word in command if word.startswith("--")}
    for command in (name for name in COMMANDS if name != "serve"):
        group: Any = typer.main.get_command(build(command))
        for parameter in group.commands[command].params:
            if parameter.param_type_name == "argument":
                assert any(tried[:2] == [command, ""] for tried, _ in OTHERS)
            elif not parameter.is_flag:
                assert f"{command} {parameter.opts[0]}" in options


def test_a_folder_with_a_main_program_and_an_archive_are_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def execve(_path: str, command: list[str], _environment: object) -> None:
        started.append(command[1:])
        raise OSError(8, "stopped here")

    monkeypatch.setattr(os, "execve", execve)
    (place / "folder" / "__main__.py").write_text("")
    (place / "archive.pyz").write_bytes(b"PK\x03\x04\0\0")
    for script in ("folder", "archive.pyz"):
        main(["run", script, "--port", "1"])
    assert started == [["folder", "--port", "1"], ["archive.pyz", "--port", "1"]]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_every_command_and_the_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert [name for name in (*COMMANDS, *LIGHT, "--version", "-h, --help") if f"  {name}" not in text] == []


def test_where_only_the_hooks_are_installed_help_and_commands_say_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "  run      Run a Python proxy" in text
    assert "pip install '.[all]' (in a clone of turnscope)" in text
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err == (
        "turnscope: doctor is not in the bare install: pip install '.[all]' (in a clone of turnscope)\n"
    )
    assert main(["nonsense"]) == 2
    assert "there is no command 'nonsense'" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "usage"), [("import", "KIND FILE..."), ("show", "SESSION"), ("why", "A B")])
def test_help_says_how_arguments_are_typed(command: str, usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"Usage: turnscope {command} [OPTIONS] {usage}"
