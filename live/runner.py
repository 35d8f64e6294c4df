"""Plans, one after the other: each one's pair is started, driven, waited for and ended."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from live import leaks, setup
from live.cards import Cards, running_cards
from live.engines import Pair, starting_pair
from live.expected import EngineSet, Moment
from live.fronts import Front, running_front
from live.plans import Phase, Plan
from live.prometheus import Prometheus
from live.remedies import Calmed
from live.result import Result, turns
from live.sidecar import Sidecar, wait_quiet, wait_rested
from live.stage import MARGIN_S, Stage, counted
from live.unknown import Share
from turnscope.emit.settings import ENDPOINT, OFF_FILE

MODEL = setup.ROOT / "build" / "pair-model"


@dataclass(frozen=True)
class Started:
    """A plan's pair on its way up, and what it has around it."""

    plan: Plan
    pair: Pair
    cards: Cards | None
    off_file: Path

    @property
    def name(self) -> str:
        """Of its configuration."""
        return self.plan.config.name


class Runner:
    """Writes what was done and seen into ``result``; leaves nothing running."""

    def __init__(
        self,
        sidecar: Sidecar,
        prometheus: Prometheus,
        result: Result,
        python: Path,
        *,
        proxy_hook: bool,
        say: Callable[[str], None],
    ) -> None:
        self._sidecar = sidecar
        self._prometheus = prometheus
        self._result = result
        self._python = python
        self._proxy_hook = proxy_hook
        self._say = say

    def do(self, plans: Sequence[Plan]) -> None:
        """All of them. No pair comes up before the one before it has ended: two cores carry one."""
        for plan in plans:
            before = self._sidecar.explained()
            with contextlib.ExitStack() as stack:
                started = self._start(plan, stack)
                self._drive(started)
                self._finish(started)
            if not plan.to_the_end and plan is not plans[-1]:
                # The sidecar goes on, and finds in time that D is gone with all that it held.
                self._result.lost_holds.append((started.name, time.time_ns()))
            if started.cards:
                self._result.trials = started.cards.done
                self._result.views = {view: turns(each.store) for view, each in started.cards.views.items()}
            now = self._sidecar.explained()
            self._result.unknown[started.name] = Share(now.turns - before.turns, now.unknown - before.unknown)

    def _start(self, plan: Plan, stack: contextlib.ExitStack) -> Started:
        folder, config = self._result.folder, plan.config
        cards = (
            stack.enter_context(running_cards(folder / "cards", self._sidecar.endpoint)) if plan.with_cards else None
        )
        off_file = folder / f"{config.name}.off"
        hook = {ENDPOINT: cards.endpoint if cards else self._sidecar.endpoint, OFF_FILE: str(off_file)}
        config = replace(config, environment={**config.environment, **hook})
        self._say(f"{config.name}: starting P and D (prefix caching on P: {config.prefix_caching}), logs in {folder}")
        pair = stack.enter_context(starting_pair(config, python=self._python, model=MODEL, logs=folder))
        self._result.groups += [engine.process.pid for engine in pair.engines]
        return Started(plan, pair, cards, off_file)

    def _drive(self, started: Started) -> None:
        waited = time.monotonic()
        started.pair.wait_ready()
        self._prometheus.scrape_engines(started.pair.engines)
        since_s = self._prometheus.settled()
        self._say(f"{started.name}: ready after {time.monotonic() - waited:.0f} s more, warmed up; driving")
        for number, phase in enumerate(started.plan.phases):
            log = self._result.folder / f"proxy-{started.plan.config.ordinal}-{number}.log"
            begun = time.monotonic()
            begin_s = self._counted() if phase.calms else since_s
            self._do(phase, started, log, since_s)
            if phase.calms:
                self._result.calmed.append(Calmed(phase.calms, started.name, since_s, begin_s, self._counted()))
            self._say(f"{started.name}: {phase.name}, done in {time.monotonic() - begun:.0f} s")

    def _do(self, phase: Phase, started: Started, log: Path, since_s: float) -> None:
        begun_s = time.time()
        hook = {ENDPOINT: self._sidecar.endpoint, OFF_FILE: str(started.off_file)} if self._proxy_hook else {}
        with running_front(
            phase.front, started.pair, log, hook=hook, options=phase.options, around_spare=phase.around_spare
        ) as running:
            stage = Stage(
                pair=started.pair,
                url=running.url,
                sidecar=self._sidecar,
                prometheus=self._prometheus,
                result=self._result,
                say=self._say,
                front=phase.front,
                hooked=self._proxy_hook and phase.front is Front.HOOKED,
                cards=started.cards,
                since_s=since_s,
                off_file=started.off_file,
            )
            phase.do(stage)
            engines = tuple(EngineSet(one.name, one.role, one.config.bidirectional) for one in started.pair.engines)
            wait_rested(self._sidecar, seconds=MARGIN_S)
            at_s = self._prometheus.settled()
            self._result.moments.append(Moment(at_s, started.name, phase.front, engines, begun_s))

    def _finish(self, started: Started) -> None:
        """Wait until all is counted, and take down what engines say themselves."""
        waited = time.monotonic()
        plan, result = started.plan, self._result
        seconds = plan.config.hold_ttl_s + MARGIN_S
        wait_quiet(self._sidecar, seconds=seconds, say=self._say, while_held=not plan.to_the_end)
        if plan.to_the_end:
            result.waited_for.add(started.name)
        for engine in started.pair.engines:
            result.count(engine)
        result.needles = leaks.needles(started.pair.prefill)
        self._say(f"{started.name}: all is counted, after {time.monotonic() - waited:.0f} s; ending it")

    def _counted(self) -> float:
        return counted(self._sidecar, self._prometheus, self._say)
