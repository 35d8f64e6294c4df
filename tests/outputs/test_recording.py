"""``serve --record``."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.builders import Pair
from turnscope.decode import codec, jsonlines
from turnscope.model import Event
from turnscope.outputs.recording import Recorder


def events_in(data: bytes) -> list[Event]:
    return [e for line in data.splitlines() for e in codec.decode(jsonlines.read(line)).events]


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_what_is_written_can_be_read_and_is_appended_to(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    pair = Pair()
    turns = [pair.turn(str(n)) for n in range(3)]
    recorder = Recorder(path, jsonlines.write, jsonlines.write_spans)
    recorder.write(turns[0], 1)
    recorder.write(turns[1], 2)
    recorder.close()
    recorder = Recorder(path, jsonlines.write, jsonlines.write_spans)
    recorder.write(turns[2], 3)
    recorder.close()
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    assert events_in(data) == turns[0] + turns[1] + turns[2]
    assert data.count(b"\n") == 3


def test_every_line_is_readable_before_the_recording_ends(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recorder = Recorder(path, jsonlines.write, jsonlines.write_spans)
    recorder.write(Pair().turn("1"), 1)
    assert events_in(path.read_bytes()) == Pair().turn("1")
    recorder.close()


def test_a_place_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Recorder(tmp_path / "gone" / "run.jsonl", jsonlines.write, jsonlines.write_spans)


def test_a_disk_that_fills_up_ends_the_recording_only(caplog: pytest.LogCaptureFixture) -> None:
    full = Path("/dev/full")
    assert full.exists(), "/dev/full is missing: it is part of Linux"
    recorder = Recorder(full, jsonlines.write, jsonlines.write_spans)
    recorder.write(Pair().turn("1"), 1)
    recorder.write(Pair().turn("2"), 1)
    recorder.close()
    assert caplog.text.count("the recording /dev/full ends here") == 1
