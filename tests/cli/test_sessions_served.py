"""A sidecar sums sessions up by itself, and ``turnscope sessions`` reads what it wrote."""

from __future__ import annotations

from pathlib import Path

from tests.builders import Pair
from tests.cli.served import served
from turnscope.store import StoreReader


def test_what_a_sidecar_was_told_is_summed_up_when_it_ends(tmp_path: Path) -> None:
    pair = Pair()
    asked = {"last_role": "user", "tool_calls": 1, "finish_reason": "tool_calls"}
    first = pair.turn("1", attempt=asked)
    second = pair.turn("2", at_ms=3000, attempt={"last_role": "tool"})
    with served(tmp_path, "--grace-seconds", "0.1") as sidecar:
        sidecar.send([*pair.start(), *first, *second])
        sidecar.settled(2)
    reader = StoreReader(str(tmp_path / "data" / "store"))
    (found,), total = reader.summaries()
    assert (total, reader.outdated()) == (1, [])
    reader.close()
    assert (found.session_id, found.turns, found.completed_tasks) == ("s", 2, 1)
    assert found.tool_wait_ns == found.tool_wait_inferred_ns == 2_100_000_000
    assert found.wall_ns == 3_900_000_000
