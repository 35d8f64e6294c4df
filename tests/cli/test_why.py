"""``turnscope why`` tells a person where two of their requests part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.cells import cell_len
from typer.testing import CliRunner

from turnscope.cli.errors import Sorry
from turnscope.cli.why import why

SYSTEM = {"role": "system", "content": "You are careful.\nNow it is 2026-10-12 09:14.\n" + "Check it twice.\n" * 40}
ASK = {"role": "user", "content": "What is new?"}
MORE = [{"role": "assistant", "content": "Nothing."}, {"role": "user", "content": "Sure?"}]
EDITED = {**SYSTEM, "content": SYSTEM["content"].replace("09:14", "09:21")}


def run(*arguments: str, columns: int = 80) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(why)
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": str(columns)})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.fixture
def files(tmp_path: Path) -> Any:
    def write(**bodies: Any) -> list[str]:
        paths = []
        for name, messages in bodies.items():
            path = tmp_path / f"{name}.json"
            path.write_text(json.dumps({"messages": messages}))
            paths.append(str(path))
        return paths

    return write


def test_a_continuation_is_code_0_and_says_what_the_files_do_not_show(files: Any) -> None:
    code, said = run(*files(a=[SYSTEM, ASK], b=[SYSTEM, ASK, *MORE]))
    assert code == 0
    assert "CONTINUES" in said
    assert "do not show" in " ".join(said.split())


@pytest.mark.parametrize("columns", [80, 120])
def test_a_divergence_is_code_1_and_shows_the_place_within_the_width(files: Any, columns: int) -> None:
    code, said = run(*files(a=[SYSTEM, ASK], b=[EDITED, ASK, *MORE]), "--text", columns=columns)
    assert code == 1
    place = "DIVERGES in message 0, system (edited): at character 41, line 2, column 25"
    assert place in " ".join(said.split())
    lines = said.splitlines()
    assert max(map(cell_len, lines)) <= columns
    caret = next(line for line in lines if line.strip() == "^").index("^")
    ours, theirs = (next(line for line in lines if line.startswith(f"  {name}  ")) for name in "AB")
    assert (ours[caret - 4 : caret + 2], theirs[caret - 4 : caret + 2]) == (" 09:14", " 09:21")
    assert "hint: What differs looks like a date or time in the system prompt" in said


def test_without_a_terminal_no_text_is_shown_unless_asked_for(files: Any) -> None:
    paths = files(a=[SYSTEM, ASK], b=[EDITED, ASK, *MORE])
    for arguments in ([], ["--no-text"], ["--json"]):
        code, said = run(*paths, *arguments)
        assert code == 1
        assert not any(word in said for word in ("careful", "09:14", "twice", "What is new"))


def test_json_tells_places_and_sizes(files: Any) -> None:
    code, said = run(*files(a=[SYSTEM, ASK], b=[EDITED, ASK, *MORE]), "--json")
    told = json.loads(said)
    assert code == 1
    assert told["outcome"] == "diverges"
    assert told["place"] == {
        "path": "messages[0]",
        "role": "system",
        "message": 0,
        "part": "content",
        "character": 41,
        "line": 2,
        "column": 25,
    }
    assert told["reusable_chars"] == 41
    assert [hint["kind"] for hint in told["hints"]] == ["changing_value", "early"]


def test_a_shortened_request_is_no_divergence(files: Any) -> None:
    code, said = run(*files(a=[SYSTEM, ASK, *MORE], b=[SYSTEM, ASK]))
    assert (code, "SHORTENED" in said) == (0, True)


def test_another_role_is_told_and_shares_are_never_rounded_to_none_or_all(files: Any) -> None:
    long = {"role": "user", "content": "word " * 1000}
    _, said = run(*files(a=[ASK, long], b=[ASK, {**long, "role": "assistant"}]))
    assert "in message 1, assistant (edited; user before)" in said
    assert "(1%)" in said
    _, said = run(*files(a=[long, ASK], b=[long, {**ASK, "content": "What is old?"}]))
    assert "(99%)" in said


def test_lines_of_one_file_can_be_compared(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps({"body": {"messages": m}}) for m in ([ASK], [ASK, *MORE], [SYSTEM, ASK])))
    assert run(f"{path}:1", f"{path}:2")[0] == 0
    assert run(f"{path}:1", str(path))[0] == 1


def test_a_text_cannot_drive_the_terminal(files: Any) -> None:
    one, other = ({"role": "user", "content": f"\x1b]0;title\x07\x1b[2J{end}\u202e\r\n"} for end in "xy")
    _, said = run(*files(a=[one], b=[other]), "--text")
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(said)
    assert "\\x1b[2Jx" in said


def test_wide_characters_keep_the_caret_in_its_place(files: Any) -> None:
    one, other = ({"role": "user", "content": "日本語" * 30 + end + "語" * 60} for end in "xy")
    _, said = run(*files(a=[one], b=[other]), "--text")
    lines = said.splitlines()
    assert max(map(cell_len, lines)) <= 80
    ours = next(line for line in lines if line.startswith("  A  "))
    caret = next(line for line in lines if line.strip() == "^").index("^")
    assert cell_len(ours[: ours.index("x")]) == caret


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "is empty"),
        (b"{", "is no JSON"),
        (b"\xff\xfe\x00", "is no text (UTF-8)"),
        (b'{"choices": []}', "no request"),
    ],
)
def test_bad_input_ends_in_one_sentence(tmp_path: Path, files: Any, content: bytes | None, words: str) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content)
    for arguments in ([str(path), *files(a=[ASK])], [*files(a=[ASK]), str(path)]):
        with pytest.raises(Sorry) as caught:
            run(*arguments)
        assert str(caught.value).startswith(str(path))
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_folder_and_a_line_that_is_not_there_are_bad_input(tmp_path: Path, files: Any) -> None:
    (path,) = files(a=[ASK])
    for argument, words in ((str(tmp_path), "Is a directory"), (f"{path}:7", "has no line 7")):
        with pytest.raises(Sorry, match=words):
            run(argument, path)
