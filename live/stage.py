"""A pair that is up with everything around it, and what a run has come to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from live.conversations import Conversation, Groups
from live.driver import TURN_SECONDS, Talk, TurnTruth, drive
from live.engines import Engine, Pair, PairConfig, kill_and_restart
from live.sidecar import Sidecar, wait_quiet
from live.verdict import Verdict
from turnscope.measures import reconcile

MARGIN_S = 90.0


@dataclass
class Result:
    """One run, all configurations."""

    folder: Path
    truth: list[TurnTruth] = field(default_factory=list)
    engines: dict[str, reconcile.Values] = field(default_factory=dict)
    """The engines' own counters, by engine name."""
    ours: dict[str, reconcile.Values] = field(default_factory=dict)
    verdict: Verdict = field(default_factory=Verdict)
    groups: list[int] = field(default_factory=list)
    """The engines' process groups."""
    needles: list[bytes] = field(default_factory=list)
    """What was planted in everything that clients wrote."""
    leaks: list[str] = field(default_factory=list)
    """Where something of what clients wrote was found outside the serving processes."""

    @property
    def rows(self) -> list[reconcile.Row]:
        """The reconciliation."""
        return reconcile.compare(self.ours, self.engines)

    @property
    def store(self) -> Path:
        """The run's Parquet store."""
        return self.folder / "data" / "store"


@dataclass(frozen=True)
class Stage:
    """What a plan acts on."""

    config: PairConfig
    pair: Pair
    url: str
    """Of the proxy."""
    sidecar: Sidecar
    result: Result
    say: Callable[[str], None]

    def hold(self, groups: Groups, *, patience_s: float = TURN_SECONDS) -> None:
        """Hold these conversations to their end; their client gives up on a turn after ``patience_s``."""
        held = drive(groups, self.config, self.url, patience_s=patience_s, say=self.say)
        self.result.truth += asyncio.run(held)

    def hold_over_a_restart(self, conversations: tuple[Conversation, ...], *, before_turn: int) -> None:
        """Hold them side by side; before their turn ``before_turn`` D, which holds for each, is killed and started
        again."""

        async def hold() -> None:
            async with httpx.AsyncClient(base_url=self.url, timeout=TURN_SECONDS) as client:
                talks = [Talk(conversation, self.config, client, self.say) for conversation in conversations]
                for turn in range(1, talks[0].conversation.turns + 1):
                    if turn == before_turn:
                        await asyncio.to_thread(self._restart_decode)
                    for talk in talks:
                        self.result.truth.append(await talk.turn())

        asyncio.run(hold())

    def count(self, engine: Engine) -> None:
        """Add what the engine has counted since it was started to its name."""
        engine.require_alive()
        page = httpx.get(f"{engine.url}/metrics", timeout=30).raise_for_status().text
        before = self.result.engines.get(engine.name, {})
        self.result.engines[engine.name] = {
            what: value + before.get(what, 0) for what, value in reconcile.theirs(page).items()
        }

    def _restart_decode(self) -> None:
        wait_quiet(self.sidecar, seconds=MARGIN_S, say=self.say, while_held=True)
        self.count(self.pair.decode)
        self.say(f"{self.config.name}: killing D and starting it again")
        kill_and_restart(self.pair.decode)
        self.result.groups.append(self.pair.decode.process.pid)
