"""A pair that is up with everything around it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from live.cards import Cards
from live.conversations import Conversation, Groups
from live.driver import TURN_SECONDS, Talk, TurnTruth, drive
from live.engines import LiveError, Pair, PairConfig, kill, start_again
from live.fronts import Front
from live.prometheus import Prometheus
from live.result import Result
from live.sidecar import Sidecar, wait_quiet
from turnscope.assembly.settings import AssemblySettings

MARGIN_S = 90.0


@dataclass(frozen=True)
class Stage:
    """What a plan acts on."""

    config: PairConfig
    pair: Pair
    url: str
    """Of the proxy."""
    sidecar: Sidecar
    prometheus: Prometheus
    result: Result
    say: Callable[[str], None]
    front: Front
    """What the proxy is."""
    cards: Cards | None = None
    """What the pair's node has, where it is made for this run."""

    def hold(self, groups: Groups, *, patience_s: float = TURN_SECONDS) -> list[TurnTruth]:
        """Hold these conversations to their end; their client gives up on a turn after ``patience_s``."""
        held = asyncio.run(drive(groups, self.config, self.front, self.url, patience_s=patience_s, say=self.say))
        self.result.truth += held
        return held

    def empty_caches(self) -> None:
        """Both engines' prefix caches, once D holds nothing any more: as long as it does, it refuses."""
        wait_quiet(self.sidecar, seconds=self.config.hold_ttl_s + MARGIN_S, say=self.say)
        for engine in self.pair.engines:
            answer = httpx.post(f"{engine.url}/reset_prefix_cache", timeout=30).raise_for_status()
            if not answer.json()["success"]:
                raise LiveError(f"{engine.name} did not empty its prefix cache.")

    def hold_with_cards(self, conversation: Callable[[int], Conversation]) -> None:
        """Do the trials with the pair's cards, each turn a conversation of its own."""
        assert self.cards is not None
        numbers = itertools.count(1)
        self.cards.hold(self.pair, lambda: self.hold(((conversation(next(numbers)),),)), self.say)

    def hold_over_a_restart(self, conversations: tuple[Conversation, ...], *, before_turn: int) -> None:
        """Hold them side by side; before their turn ``before_turn`` D, which holds for each, is killed and started
        again."""

        async def hold() -> None:
            async with httpx.AsyncClient(base_url=self.url, timeout=TURN_SECONDS) as client:
                talks = [
                    Talk(conversation, self.config, self.front, client, self.say) for conversation in conversations
                ]
                for turn in range(1, talks[0].conversation.turns + 1):
                    if turn == before_turn:
                        await asyncio.to_thread(self._restart_decode)
                    for talk in talks:
                        self.result.truth.append(await talk.turn())

        asyncio.run(hold())

    def _restart_decode(self) -> None:
        wait_quiet(self.sidecar, seconds=MARGIN_S, say=self.say, while_held=True)
        self.result.count(self.pair.decode)
        self.say(f"{self.config.name}: killing D and starting it again")
        kill(self.pair.decode)
        killed_s = time.monotonic()
        self.prometheus.scrape_engines(self.pair.urls, started_again={self.pair.decode.name})
        start_again(self.pair.decode)
        self.result.groups.append(self.pair.decode.process.pid)
        # So long the killed one is taken for alive.
        time.sleep(max(0.0, killed_s + AssemblySettings().alive_ns / 1e9 - time.monotonic()))
