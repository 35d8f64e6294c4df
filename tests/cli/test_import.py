"""``turnscope import`` puts files of other tools into the store, whole, once and beside a sidecar."""

from __future__ import annotations

import codecs
import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.decode.imports.sample import FOLDER, published, transfer_line, write_run
from tests.store.rows import fill, turn
from turnscope.cli.main import main
from turnscope.store import StoreReader, StoreWriter

SESSION = "5a1e0000-0000-4000-8000-000000000001"
ERRORS = [
    (["nonsense", "a"], "KIND: there is no kind 'nonsense': choose from otlp, claude-code, "),
    (["codex", "gone"], "FILE: 'gone' cannot be read (No such file or directory)"),
    (["codex", "claude"], "claude is not of kind codex: it looks like claude-code"),
    (["dynamo", "claude"], "it looks like claude-code"),
    (["vllm-benchmark", "claude"], "it looks like claude-code"),
    (["claude-code", "run.json"], "it looks like vllm-benchmark"),
    (["claude-code", "run-proxy.log"], "it looks like published-benchmark"),
    (["claude-code", "otlp"], "it looks like otlp"),
    (["otlp", "claude"], "it looks like claude-code"),
    (["claude-code", "empty"], "nothing in its first 100 lines is of that kind"),
    (["claude-code", "binary"], "nothing in its first 100 lines is of that kind"),
    (["claude-code", "words"], "nothing in its first 100 lines is of that kind"),
    (["claude-code", "claude", "words"], "words is not of kind claude-code"),
    (["vllm-benchmark", "array"], "nothing in its first 100 lines is of that kind"),
    (
        ["published-benchmark", "run.json"],
        "takes the three files of one run, statistics, proxy's log and P's log, and 1",
    ),
    (["published-benchmark", "run.json", "words", "claude"], "exactly one must be a log with 'Prefill done in'"),
    (["published-benchmark", "run-proxy.log", "words", "claude"], "exactly one must be statistics"),
    (["published-benchmark", "run.json", "run-proxy.log", "decode.log"], "decode.log is D's log, whose transfers are"),
    (["codex", "claude", "--run", "on"], "--run: codex has no runs: leave it out"),
    (["claude-code", "claude", "--store", "words"], "(Not a directory): check the path, or choose another store"),
]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with files of several kinds; the store goes to ``store`` in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNSCOPE_STORE", str(tmp_path / "store"))
    shutil.copy(FOLDER / "claude-code.jsonl", "claude")
    write_run(tmp_path, published(on=True))
    Path("empty").write_bytes(b"")
    Path("decode.log").write_text(f"INFO kv_role='kv_consumer', engine_id='d'\n{transfer_line(36, 5)}\n")
    Path("binary").write_bytes(bytes(range(256)) * 4096)
    Path("words").write_text("these are\nonly words\n")
    Path("array").write_text('[{"a": 1}]')
    Path("otlp").write_text('{"resourceSpans":[]}\n')
    return tmp_path


def imported(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    """What ``--json`` says of an import that ends with ``code``."""
    assert main(["import", *arguments, "--json"]) == code
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def spans(session: str = SESSION) -> list[dict[str, Any]]:
    reader = StoreReader("store")
    try:
        return reader.spans(session).table.to_pylist()
    finally:
        reader.close()


@pytest.mark.parametrize(("arguments", "part"), ERRORS, ids=[" ".join(a) for a, _ in ERRORS])
def test_what_cannot_be_imported_is_one_sentence_and_nothing_is_written(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], part: str
) -> None:
    assert main(["import", *arguments]) == 2
    out, err = capsys.readouterr()
    assert part in err
    assert (out, err.count("\n")) == ("", 1)
    assert not (place / "store").exists()


@pytest.mark.parametrize(
    ("kind", "calls", "tools"), [("claude-code", 5, 3), ("codex", 3, 3), ("dynamo", 3, 3), ("otlp", 2, 1)]
)
def test_a_sessions_file_becomes_spans_of_its_kinds(
    capsys: pytest.CaptureFixture[str], kind: str, calls: int, tools: int
) -> None:
    (file,) = imported(capsys, kind, str(FOLDER / f"{kind}.jsonl"))["files"]
    assert (file["rows"]["model_call"], file["rows"]["tool"]) == (calls, tools)
    assert (file["report"]["broken"], file["report"]["named"]) == (0, [])


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
@pytest.mark.parametrize("kind", ["claude-code", "codex", "dynamo", "otlp", "vllm-benchmark"])
def test_a_file_may_begin_with_the_mark_that_some_editors_set(
    capsys: pytest.CaptureFixture[str], kind: str, packed: bool
) -> None:
    source = Path("run.json") if kind == "vllm-benchmark" else FOLDER / f"{kind}.jsonl"
    (plain,) = imported(capsys, kind, str(source))["files"]
    marked = codecs.BOM_UTF8 + source.read_bytes()
    Path("marked").write_bytes(gzip.compress(marked) if packed else marked)
    (found,) = imported(capsys, kind, "marked")["files"]
    assert (found["rows"], found["report"]) == (plain["rows"], plain["report"])


def test_no_byte_of_prompts_answers_or_tools_is_in_the_store(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("claude-code", "codex", "dynamo", "otlp"):
        imported(capsys, kind, str(FOLDER / f"{kind}.jsonl"))
    stored = [path.read_bytes() for path in (place / "store").rglob("*") if path.is_file()]
    assert sum(map(len, stored)) > 10_000
    assert [b"CANARY" in data for data in stored] == [False] * len(stored)
    rows = json.dumps(
        [*spans(), *spans("otlp-1"), *spans("run-42:researcher"), *spans("c0de0000-0000-7000-8000-000000000001")]
    )
    assert "CANARY" not in rows


def test_importing_a_file_again_adds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    imported(capsys, "claude-code", "claude")
    before = spans()
    imported(capsys, "claude-code", "claude")
    assert spans() == before
    assert len(before) == 9


def test_a_file_that_has_grown_completes_what_was_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    whole = Path("claude").read_text().splitlines(keepends=True)
    Path("claude").write_text("".join(whole[:4]))
    imported(capsys, "claude-code", "claude")
    assert [(row["kind"], row["ended_ns"]) for row in spans() if row["kind"] == "tool"] == [("tool", None)]
    Path("claude").write_text("".join(whole))
    imported(capsys, "claude-code", "claude")
    assert len(spans()) == 9
    assert sum(row["ended_ns"] is not None for row in spans() if row["kind"] == "tool") == 2


def test_a_gzipped_file_gives_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    Path("claude.gz").write_bytes(gzip.compress(Path("claude").read_bytes()))
    imported(capsys, "claude-code", "claude.gz")
    before = spans()
    imported(capsys, "claude-code", "claude")
    assert spans() == before


def test_broken_lines_are_named_by_number_never_quoted_and_the_rest_is_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = Path("claude").read_bytes().splitlines()
    Path("claude").write_bytes(b"\n".join([*good[:2], b'{"CANARY', b"\xff\xfe\x00", *good[2:], good[-1][:50]]))
    assert main(["import", "claude-code", "claude"]) == 1
    out, err = capsys.readouterr()
    assert err == f"  left out 3: 3 (not JSON), 4 (not JSON), {len(good) + 3} (not JSON)\n"
    assert "stored in" in out
    assert "CANARY" not in out + err
    assert len(spans()) == 9


def test_a_truncated_gzip_keeps_what_is_whole_and_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    whole = gzip.compress(Path("claude").read_bytes() * 50)
    Path("cut.gz").write_bytes(whole[:-20])
    (file,) = imported(capsys, "claude-code", "cut.gz", code=1)["files"]
    assert file["report"]["named"][-1]["why"] == "the file is cut off here"
    assert len(spans()) == 9


def test_it_writes_beside_a_running_sidecar_and_not_beside_another_import(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sidecar = StoreWriter("store", writer_id="serve", now=lambda: 0)
    imported(capsys, "claude-code", "claude")
    sidecar.close()
    other = StoreWriter("store", writer_id="import-claude-code", now=lambda: 0)
    assert main(["import", "claude-code", "claude"]) == 2
    assert "another process is writing manifests/import-claude-code.json" in capsys.readouterr().err
    other.close()


def test_a_span_of_otlp_without_a_session_inherits_it_from_a_parent_that_comes_later(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for _ in range(2):
        imported(capsys, "otlp", str(FOLDER / "otlp.jsonl"))
    found = {row["span_id"][-1]: row for row in spans("otlp-1")}
    assert {name: row["session_source"] for name, row in found.items()} == {
        "1": "gen_ai.conversation.id",
        "2": "gen_ai.conversation.id",
        "3": "parent",
    }
    (sub,) = spans("otlp-1-sub")
    assert sub["parent_session_id"] == "otlp-1"


def test_a_runs_statistics_become_turns_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    imported(capsys, "vllm-benchmark", "run.json")
    imported(capsys, "vllm-benchmark", "run.json", "--run", "again")
    reader = StoreReader("store")
    assert reader.runs() == ["again", "run"]
    assert reader.run_turns("run").num_rows == 36
    assert reader.session("again:CONV_ID_0") is not None
    reader.close()


def test_logs_that_are_added_later_complete_the_same_turns(capsys: pytest.CaptureFixture[str]) -> None:
    imported(capsys, "vllm-benchmark", "run.json")
    imported(capsys, "published-benchmark", "run-prefill.log", "run.json", "run-proxy.log")
    reader = StoreReader("store")
    found = reader.run_turns("run").to_pylist()
    reader.close()
    assert len(found) == 36
    assert all(row["prefill_ns"] is not None for row in found)


def test_of_three_files_it_is_said_which_one_has_the_broken_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Path("run-proxy.log").open("a") as log:
        log.write("[nobody] Prefill done in 12ms\n")
    assert main(["import", "published-benchmark", "run.json", "run-proxy.log", "run-prefill.log"]) == 1
    told = capsys.readouterr().err
    assert "left out 1: " in told
    assert "(a prefill of a request that the log does not begin, in run-proxy.log)" in told


def test_a_run_that_is_too_long_to_be_joined_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnscope.cli.import_.MOST_TURNS", 35)
    assert main(["import", "published-benchmark", "run.json", "run-proxy.log", "run-prefill.log"]) == 2
    assert "more than 35 turns cannot be joined: import the statistics as vllm-benchmark" in capsys.readouterr().err


def test_hooked_turns_belong_to_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    fill("store", turn(1))
    imported(capsys, "vllm-benchmark", "run.json")
    reader = StoreReader("store")
    assert (reader.runs(), reader.totals().turns) == (["run"], 37)
    reader.close()


def test_for_people_it_says_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "claude-code", "claude"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("claude: 15 records, 5 model calls, 3 tools, 1 user wait\n")


def test_memory_does_not_grow_with_the_file(place: Path) -> None:
    """The resident memory of an import of 8 MB and of one of 40 MB, whose 100,000 rows are stored as ten files."""
    sizes = []
    line = Path("claude").read_text().splitlines()[4]
    for name, repeats in (("small", 10_000), ("large", 50_000)):
        with Path(name).open("w") as file:
            for n in range(repeats):
                file.write(line.replace("req_1", f"req-{n}").replace("toolu_2", f"toolu-{n}").replace(SESSION, name))
                file.write(" " * 300 + "\n")
        program = (
            "import pathlib, re, sys; from turnscope.cli.main import main; "
            f"code = main(['import', 'claude-code', '{name}', '--json']); "
            # Not ru_maxrss: a child begins with its parent's.
            "status = pathlib.Path('/proc/self/status').read_text(); "
            "print(re.search(r'VmHWM:\\s+(\\d+)', status)[1], file=sys.stderr); sys.exit(code)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=110, cwd=place)
        assert done.returncode == 0, done.stderr
        sizes.append(int(done.stderr) / 1024)
    small, large = sizes
    assert large < 300
    assert large < small + 60


def test_of_a_recording_of_hooks_nothing_is_imported_no_store_is_made_and_replay_is_named(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = str(Path(__file__).parents[2] / "recordings" / "pair.jsonl")
    assert main(["import", "otlp", recording]) == 2
    out, err = capsys.readouterr()
    assert out == f"{recording}: 790 records, nothing to store\n"
    assert err.startswith("turnscope: nothing was imported: ")
    assert "'turnscope replay FILE'" in err
    assert main(["import", "otlp", recording, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["store"] is None
    assert not (place / "store").exists()
