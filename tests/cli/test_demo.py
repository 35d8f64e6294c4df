"""``turnscope demo --check`` replays a recording through a whole sidecar and compares what comes out."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.builders import BLOCK_BYTES, Pair
from tests.store.rows import fill, turn
from turnscope import shipped
from turnscope.cli import demo, demo_check
from turnscope.cli.errors import Sorry
from turnscope.cli.main import main
from turnscope.cli.ports import first_free
from turnscope.decode import jsonlines
from turnscope.measures.sessions import summarise
from turnscope.store import StoreWriter

# Turn 1 computes 1,000 tokens; turn 2 has 1,250, fetches 1,199 of them (75 blocks of 16) and computes 51.
COUNTERS: dict[str, Any] = {
    "engines": {
        "prefill-0": {
            "prompt tokens, local_compute": 1051,
            "prompt tokens, local_cache_hit": 0,
            "prompt tokens, external_kv_transfer": 1199,
            "transfers": 1,
            "transfer bytes": 75 * BLOCK_BYTES,
        },
        "decode-0": {
            "prompt tokens, local_compute": 2,
            "prompt tokens, local_cache_hit": 0,
            "prompt tokens, external_kv_transfer": 999 + 1249,
            "transfers": 2,
            "transfer bytes": (63 + 79) * BLOCK_BYTES,
        },
    },
    "turns": 2,
    "sessions": 1,
}
ZEROS = ("failed transfers", "expiries", "notices after expiry")


def _record(folder: Path) -> Path:
    pair = Pair()
    events = [
        *pair.start(),
        *pair.turn("1", prompt=1000),
        *pair.turn("2", at_ms=2000, prompt=1250, fetched=1199, given=pair.handle("1", 1199)),
    ]
    path = folder / "run.jsonl"
    path.write_bytes(jsonlines.write(events, 1))
    counters = {**COUNTERS, "engines": {n: {**v, **dict.fromkeys(ZEROS, 0)} for n, v in COUNTERS["engines"].items()}}
    path.with_suffix(".counters.json").write_text(json.dumps(counters))
    return path


def test_a_recording_that_agrees_with_its_engines_has_only_equal_lines(tmp_path: Path) -> None:
    said: list[str] = []
    lines = demo.compare([_record(tmp_path)], tmp_path, said.append)
    assert [line for line in lines if not line.equal] == []
    expected = {
        "prefill-0: prompt tokens, external_kv_transfer": 1199,
        "decode-0: transfers": 2,
        "metrics: turns": 2,
        "traces": 2,
        "page: turns": 2,
        "page: sessions": 1,
        "page: tokens fetched": 1199,
        "page: tokens computed": 1051,
        "page: bytes fetched": 75 * BLOCK_BYTES,
    }
    assert {line.what: line.ours for line in lines if line.what in expected} == expected
    assert "replayed" in said[0]


def test_a_counter_that_differs_is_named(tmp_path: Path) -> None:
    recording = _record(tmp_path)
    beside = recording.with_suffix(".counters.json")
    beside.write_text(beside.read_text().replace("1199", "1200").replace('"turns": 2', '"turns": 3'))
    lines = demo.compare([recording], tmp_path, lambda _: None)
    assert [line.what for line in lines if not line.equal] == [
        "prefill-0: prompt tokens, external_kv_transfer",
        "metrics: turns",
        "traces",
        "page: turns",
    ]


def test_a_figure_that_is_missing_is_no_equality() -> None:
    counters = demo_check.Counters(engines={}, turns=0, sessions=0)
    page = demo_check.Page(
        turns=0, sessions=0, fetched_tokens=0, local_hit_tokens=0, computed_tokens=0, fetched_bytes=0
    )
    lines = {line.what: line for line in demo_check.compare(counters, "", 0, page)}
    assert lines["metrics: turns"].equal is False
    assert lines["traces"].equal is True


def test_counters_of_several_recordings_are_added_up(tmp_path: Path) -> None:
    paths = []
    for n in (1, 2):
        paths.append(tmp_path / f"{n}.jsonl")
        paths[-1].with_suffix(".counters.json").write_text(
            json.dumps({"engines": {"prefill-0": {"transfers": n}}, "turns": 4, "sessions": n})
        )
    assert demo_check.counters_of(paths) == demo_check.Counters(
        engines={"prefill-0": {"transfers": 3}}, turns=8, sessions=3
    )


@pytest.mark.parametrize("content", [None, b"{", b"{}"])
def test_counters_that_cannot_be_read_are_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    recording = tmp_path / "run.jsonl"
    if content is not None:
        recording.with_suffix(".counters.json").write_bytes(content)
    with pytest.raises(Sorry, match=r"run\.counters\.json"):
        demo_check.counters_of([recording])


def test_the_recording_that_comes_with_turnscope_is_there_wherever_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = shipped.recordings()
    assert found.name == "pair.jsonl"
    assert demo_check.counters_of([found]).turns > 0


def test_a_page_that_shows_no_table_is_one_sentence(tmp_path: Path) -> None:
    StoreWriter(str(tmp_path / "store"), writer_id="w", now=lambda: 1).close()
    with pytest.raises(Sorry, match="the store has no turns"):
        demo_check.page(str(tmp_path / "store"))


def test_a_page_of_a_store_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Sorry, match="the sessions page shows no table: there is no turnscope store"):
        demo_check.page(str(tmp_path / "none"))


def test_the_pages_figures_are_read_without_a_word_from_the_web_framework(tmp_path: Path) -> None:
    known = turn(1, fetched_tokens=7)
    session = summarise(str(known.session_id), [known], [])
    assert session is not None
    fill(tmp_path, known, turn(2, session_id=None, fetched_tokens=5))
    writer = StoreWriter(str(tmp_path), writer_id="s", now=lambda: 1)
    writer.add_session(session.summary)
    writer.close()
    script = f"from turnscope.cli import demo_check; print(demo_check.page({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True)
    assert done.stderr == ""
    assert "turns=2, sessions=1, fetched_tokens=12" in done.stdout


def test_the_explorer_answers_and_is_gone_afterwards(tmp_path: Path) -> None:
    StoreWriter(str(tmp_path / "store"), writer_id="w", now=lambda: 1).close()
    with demo.explorer(str(tmp_path / "store"), tmp_path) as address:
        assert httpx.get(address, trust_env=False).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(address, trust_env=False)


def test_the_demo_leaves_the_environments_store_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNSCOPE_STORE", str(tmp_path / "production"))
    (tmp_path / "demo").mkdir()
    demo.compare([_record(tmp_path)], tmp_path / "demo", lambda _: None)
    assert not (tmp_path / "production").exists()


def test_a_taken_port_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert first_free(port) != port
    assert first_free(port) == port


def test_what_the_demo_prints_to_be_pasted_finds_its_store_and_opens_a_session_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path, turn(1, session_id="my session"))
    lines = demo.commands(".venv/bin/turnscope", "http://127.0.0.1:9470", str(tmp_path))
    typed = [shlex.split(line) for line in lines if line.startswith("  ")]
    assert typed[0] == ["export", f"TURNSCOPE_STORE={tmp_path}"]
    assert typed[-1] == [".venv/bin/turnscope", "doctor", "--address", "http://127.0.0.1:9470"]
    monkeypatch.setenv("TURNSCOPE_STORE", str(tmp_path))
    for program, *arguments in typed[1:-1]:
        assert program == ".venv/bin/turnscope"
        assert main(arguments) == 0
        assert "my session" in capsys.readouterr().out


def test_a_demo_without_sessions_names_none(tmp_path: Path) -> None:
    fill(tmp_path)
    assert not any(" show " in line for line in demo.commands("turnscope", "http://127.0.0.1:9464", str(tmp_path)))
