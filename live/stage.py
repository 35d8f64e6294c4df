"""A pair that is up with everything around it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx

from live.cards import Cards
from live.conversations import Conversation, Groups
from live.driver import TURN_SECONDS, Talk, TurnTruth, drive
from live.engines import Engine, LiveError, Pair, PairConfig, kill, start_again, stop_engine
from live.fronts import Front
from live.prometheus import Prometheus
from live.remedies import Calmed
from live.result import Result, counters
from live.sidecar import Sidecar, wait_quiet
from turnscope.measures import reconcile

MARGIN_S: Final = 90.0
UNSEEN_S: Final = 1.0
"""An engine counts what it did in the step after it."""


def counted(sidecar: Sidecar, prometheus: Prometheus, say: Callable[[str], None]) -> float:
    """The time of a scrape when all that was done is counted."""
    wait_quiet(sidecar, seconds=MARGIN_S, say=say, while_held=True)
    return prometheus.settled()


@dataclass(frozen=True)
class Stage:
    """What a plan acts on."""

    pair: Pair
    url: str
    """Of the proxy."""
    sidecar: Sidecar
    prometheus: Prometheus
    result: Result
    say: Callable[[str], None]
    front: Front
    """What the proxy is."""
    hooked: bool
    """Whether it has a hook."""
    cards: Cards | None
    """What the pair's node has, where it is made for this run."""
    since_s: float
    """When the pair was first seen."""
    off_file: Path
    """As long as it is there, the hooks of the pair and its proxy do nothing."""

    @property
    def config(self) -> PairConfig:
        """How D is set now: it keeps what conversations are about."""
        return self.pair.decode.config

    def hold(self, groups: Groups, *, patience_s: float = TURN_SECONDS) -> list[TurnTruth]:
        """Hold these conversations to their end; their client gives up on a turn after ``patience_s``."""
        held = self._drive(groups, patience_s)
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

    def hold_over_a_crash(self, conversations: tuple[Conversation, ...], *, before_turn: int, **changed: Any) -> None:
        """Hold them side by side; before their turn ``before_turn`` D, which holds for each, is killed and started
        again, with its settings ``changed``."""

        async def hold() -> None:
            async with httpx.AsyncClient(base_url=self.url, timeout=TURN_SECONDS) as client:
                talks = [
                    Talk(conversation, self.config, self.front, client, self.say) for conversation in conversations
                ]
                for turn in range(1, talks[0].conversation.turns + 1):
                    if turn == before_turn:
                        await asyncio.to_thread(self.restart, self.pair.decode, crash=True, **changed)
                    for talk in talks:
                        talk.config = self.config
                        self.result.truth.append(await talk.turn())

        asyncio.run(hold())

    def restart(self, engine: Engine, *, crash: bool = False, **changed: Any) -> float:
        """End an engine and start it again, with its settings ``changed``; after a ``crash`` under the same engine id.
        The time of a scrape before that, when all that had been done was counted."""
        counted_s = counted(self.sidecar, self.prometheus, self.say)
        self.result.count(engine)
        config = replace(engine.config, **changed)
        self.say(f"{config.name}: ending {engine.name}, and starting it again with {changed or 'the same settings'}")
        (kill if crash else stop_engine)(engine)
        if engine is self.pair.decode:
            self.result.lost_holds.append((config.name, time.time_ns()))
        engine.life += 1
        self.prometheus.scrape_engines(self.pair.engines)
        # What warms it up is nobody's turn: of such a one a sidecar waits for the proxy's word.
        with self._hooks_off({**self._counters(), engine.name: {}}):
            start_again(engine, config, same_id=crash)
        self.result.groups.append(engine.process.pid)
        return counted_s

    def calmed(self, alerts: tuple[str, ...], begin_s: float) -> None:
        """These fired until ``begin_s``; what has been done since must have ended them."""
        end_s = counted(self.sidecar, self.prometheus, self.say)
        self.result.calmed.append(Calmed(alerts, self.config.name, self.since_s, begin_s, end_s))

    def hold_unseen(self, groups: Groups) -> float:
        """Hold these conversations while hooks are switched off: nobody but their client and the engines' own counters
        is to know of them. The time of a scrape meanwhile."""
        counted(self.sidecar, self.prometheus, self.say)
        with self._hooks_off(self._counters()):
            self._wait_for_hooks(0)
            self.result.unseen_truth += self._drive(groups, TURN_SECONDS)
            time.sleep(UNSEEN_S)
            return self.prometheus.settled()

    @contextlib.contextmanager
    def _hooks_off(self, before: Mapping[str, reconcile.Values]) -> Iterator[None]:
        """Until its end; what engines have counted since ``before``, by name, has not been seen then."""
        self.off_file.touch()
        try:
            yield
            for engine in self.pair.engines:
                self.result.unseen(engine, before[engine.name])
        finally:
            self.off_file.unlink()
        # Each engine's, that of its worker, and the proxy's; one that was killed is forgotten by then.
        self._wait_for_hooks(2 * len(self.pair.engines) + self.hooked)

    def _wait_for_hooks(self, count: int) -> None:
        deadline = time.monotonic() + MARGIN_S
        while (heard := self.sidecar.hooks()) != count:
            if time.monotonic() > deadline:
                raise LiveError(f"{heard} hooks are heard, {MARGIN_S:.0f} s after it should be {count}.")
            time.sleep(0.5)

    def _counters(self) -> dict[str, reconcile.Values]:
        return {engine.name: counters(engine) for engine in self.pair.engines if engine.process.poll() is None}

    def _drive(self, groups: Groups, patience_s: float) -> list[TurnTruth]:
        return asyncio.run(drive(groups, self.config, self.front, self.url, patience_s=patience_s, say=self.say))
