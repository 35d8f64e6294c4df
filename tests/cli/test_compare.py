"""``turnscope compare`` redraws the published benchmark's two views from imported files alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.decode.imports.sample import Request, published, write_run
from turnscope.cli.main import main

MS = 1e6


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A store with the runs ``on`` and ``off``, imported from their artefacts; the one on two ranks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNSCOPE_STORE", str(tmp_path / "store"))
    for name in ("on", "off"):
        files = write_run(tmp_path, published(on=name == "on"), ranks=2, name=name)
        assert main(["import", "published-benchmark", *files]) == 0
    capsys.readouterr()
    return tmp_path


def compared(capsys: pytest.CaptureFixture[str], *names: str) -> list[dict[str, Any]]:
    assert main(["compare", *names, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["by_prompt_tokens"]
    return found


def test_the_first_view_has_the_published_times_to_the_first_token(capsys: pytest.CaptureFixture[str]) -> None:
    rows = compared(capsys, "on", "off")
    assert [row["from_tokens"] for row in rows] == list(range(2_000, 24_001, 2_000))
    longest = rows[-1]
    assert (longest["a"]["ttft_ns"] / MS, longest["b"]["ttft_ns"] / MS) == (460, 778)
    assert longest["ttft_b_over_a"] == pytest.approx(1.69, abs=0.005)
    assert {row[side]["ttft_turns"] for row in rows for side in "ab"} == {3}


def test_the_second_view_splits_prefills_into_transfer_and_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    rows = compared(capsys, "on", "off")
    on, off = rows[-1]["a"], rows[-1]["b"]
    assert (on["prefill_ns"] / MS, on["transfer_ns"] / MS, on["compute_ns"] / MS) == (440, 130, 310)
    assert (off["prefill_ns"] / MS, off["transfer_ns"], off["compute_ns"] / MS) == (758, 0, 758)
    transfers = [row["a"]["transfer_ns"] / MS for row in rows]
    assert (transfers[0], min(transfers[1:]), max(transfers)) == (0, pytest.approx(39.09, abs=0.01), 130)


def test_for_people_both_views_stand_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "on", "off"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["24,000", "3", "460", "-", "3", "778", "-", "1.69"] in lines
    assert ["24,000", "440", "310", "130", "758", "758", "0"] in lines


def test_what_the_logs_do_not_tell_is_a_dash_and_not_0(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = [Request("c", n, tokens=100, ttft_ms=50, prefill_ms=40, at_s=n, handle=n > 1) for n in (1, 2, 3)]
    files = write_run(runs, odd, name="odd")
    Path(files[2]).write_text("nothing of transfers\n")
    assert main(["import", "published-benchmark", *files]) == 0
    assert "they cannot be shared out" in capsys.readouterr().out
    (row,) = [row for row in compared(capsys, "odd", "on") if row["a"]["ttft_turns"]]
    assert (row["a"]["prefill_turns"], row["a"]["split_turns"], row["a"]["transfer_ns"]) == (3, 1, None)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["on", "gone"], "has no run 'gone': it has 'off', 'on'; 'turnscope import' brings one"),
        (["", "off"], "RUN_A: it is empty"),
        (["on", ""], "RUN_B: it is empty"),
        (
            ["on", "off", "--store", "nowhere"],
            "there is no turnscope store at nowhere: put both runs there with 'turnscope import KIND",
        ),
        (["on", "off", "--store", ""], "--store: it is empty"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], part: str
) -> None:
    assert main(["compare", *arguments]) == 2
    err = capsys.readouterr().err
    assert part in err
    assert err.count("\n") == 1
