"""What a run has come to: counts, turns, and everything that is not as it should be."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from live import agent_verdict, foreign, kept, overview, remedies, savings, trials
from live.agent import Session
from live.driver import TurnTruth
from live.engines import Engine
from live.expected import Facts, Moment
from live.fronts import Front
from live.prometheus import Prometheus
from live.remedies import Calmed
from live.savings import Saving
from live.trials import Done
from live.unknown import Share, unexplained, unknown_of
from live.verdict import Row, Verdict, judge
from turnscope.measures import reconcile
from turnscope.model import AgentSpan, Turn
from turnscope.semconv import Transport
from turnscope.store import StoreReader


@dataclass
class Result:
    """One run, all configurations."""

    folder: Path
    truth: list[TurnTruth] = field(default_factory=list)
    engines: dict[str, reconcile.Values] = field(default_factory=dict)
    """The engines' own counters, by engine name, of what they did while their hooks were on."""
    not_seen: dict[str, reconcile.Values] = field(default_factory=dict)
    """And of what they did while they were off."""
    unseen_truth: list[TurnTruth] = field(default_factory=list)
    """What was done meanwhile."""
    lost_holds: list[tuple[str, int]] = field(default_factory=list)
    """Configurations whose D ended, and when (wall clock, ns): with it went what it held."""
    ours: dict[str, reconcile.Values] = field(default_factory=dict)
    unknown: dict[str, Share] = field(default_factory=dict)
    """By configuration, by our own metric: turns that both kinds of hooks told of, without a known reason."""
    stored_unknown: dict[str, Share] = field(default_factory=dict)
    """The same by the store."""
    waited_for: set[str] = field(default_factory=set)
    """Configurations that were watched until D held nothing more."""
    scripted: list[Session] = field(default_factory=list)
    """Sessions of the scripted agent, as it timed itself."""
    saved: list[Saving] = field(default_factory=list)
    """What reuse spared, against what was predicted."""
    trials: list[Done] = field(default_factory=list)
    """What was done with network cards made of files."""
    views: dict[str, list[Row]] = field(default_factory=dict)
    """The turns of the sidecars that looked at them, by view."""
    over_efa: int = 0
    """Windows of the run's own sidecar, which looks at this host's real cards, that it said went over EFA."""
    moments: list[Moment] = field(default_factory=list)
    """When a pair had done what was to be done with it through one proxy, and both were still up."""
    begin_s: float = 0.0
    end_s: float = 0.0
    """Of the first scrape of the run's sidecar, and of one when all was counted."""
    shown_wrongly: list[str] = field(default_factory=list)
    """What the Overview dashboard showed in the run's Prometheus, and was not so."""
    calmed: list[Calmed] = field(default_factory=list)
    """Remedies of runbooks that were tried."""
    not_calmed: list[str] = field(default_factory=list)
    """Alerts that were not as they should be around their remedy."""
    verdict: Verdict = field(default_factory=Verdict)
    groups: list[int] = field(default_factory=list)
    """The engines' process groups."""
    needles: list[bytes] = field(default_factory=list)
    """What was planted in everything that clients wrote."""
    leaks: list[str] = field(default_factory=list)
    """Where something of what clients wrote was found outside the serving processes."""

    def count(self, engine: Engine) -> None:
        """Add what the engine has counted since it was started to its name."""
        self.engines[engine.name] = _plus(self.engines.get(engine.name, {}), counters(engine))

    def unseen(self, engine: Engine, before: reconcile.Values) -> None:
        """What it has counted since ``before`` its hooks have not seen."""
        since = _minus(counters(engine), before)
        self.not_seen[engine.name] = _plus(self.not_seen.get(engine.name, {}), since)
        self.engines[engine.name] = _minus(self.engines.get(engine.name, {}), since)

    @property
    def rows(self) -> list[reconcile.Row]:
        """The reconciliation."""
        return reconcile.compare(self.ours, self.engines)

    @property
    def store(self) -> Path:
        """The run's Parquet store."""
        return self.folder / "data" / "store"

    @property
    def known(self) -> dict[str, tuple[list[Turn], list[AgentSpan]]]:
        """Turns and spans of the scripted sessions, and of those that savings are predicted of, by session."""
        names = [session.session_id for session in self.scripted] + savings.predicted(self.truth)
        if not names:
            return {}
        with contextlib.closing(StoreReader(str(self.store))) as reader:
            return reader.known(names)

    def ask(self, prometheus: Prometheus, stored: Sequence[Row]) -> None:
        """Ask the Prometheus that has scraped the run for every panel, and for alerts around their remedies."""
        facts = Facts(
            stored,
            self.truth,
            self.scripted,
            self.engines,
            self.not_seen,
            self.moments,
            self.begin_s,
            self.end_s,
        )
        self.shown_wrongly = overview.judge(facts, prometheus)
        self.not_calmed = list(remedies.judge(self.calmed, prometheus.moment))

    def judge(self, stored: Sequence[Row]) -> None:
        """Hold the turns of the run's store against what was done, and add up what is not right anywhere."""
        hooked = [turn for turn in self.truth if turn.front is Front.HOOKED]
        self.verdict = judge(hooked, stored)
        foreign.judge([turn for turn in self.truth if turn.front is not Front.HOOKED], stored, self.verdict)
        self.verdict.problems += kept.judge(hooked, stored, self.waited_for, self.lost_holds)
        self.verdict.problems += trials.judge(self.trials, self.views)
        # Before any proxy is heard of, what warms an engine up counts as a turn as well.
        begun = min((turn.started_wall_ns for turn in self.truth), default=0)
        scripted = {name for session in self.scripted for name in session.conversations}
        since = [row for row in stored if row["started_ns"] >= begun and row["session_id"] not in scripted]
        if len(since) != len(self.truth):
            self.verdict.problems.append(f"{len(since)} turns in the store, and {len(self.truth)} were done")
        if over_efa := self.over_efa + sum(row["transport"] == Transport.EFA for row in stored):
            self.verdict.problems.append(f"{over_efa} windows and turns over EFA, which this host's loopback is not")
        self.verdict.problems += [*self.shown_wrongly, *self.not_calmed]
        self.verdict.problems += remedies.judge_unseen(self.unseen_truth, stored)
        known = self.known
        self.verdict.problems += agent_verdict.judge(self.scripted, known)
        self.saved = savings.trials(self.truth, known)
        self.verdict.problems += savings.judge(self.saved)
        self.stored_unknown = unknown_of(hooked, self.scripted, stored)
        self.verdict.problems += unexplained(self.unknown, self.stored_unknown)


def turns(store: Path) -> list[Row]:
    """All turns of a run's store."""
    with contextlib.closing(StoreReader(str(store))) as reader:
        return list(reader.recent_turns(limit=10_000).table.to_pylist())


def counters(engine: Engine) -> reconcile.Values:
    """What the engine has counted since it was started."""
    engine.require_alive()
    return reconcile.theirs(httpx.get(f"{engine.url}/metrics", timeout=30).raise_for_status().text)


def _plus(one: reconcile.Values, other: reconcile.Values) -> reconcile.Values:
    return {what: one.get(what, 0) + other.get(what, 0) for what in one.keys() | other.keys()}


def _minus(one: reconcile.Values, other: reconcile.Values) -> reconcile.Values:
    return _plus(one, {what: -value for what, value in other.items()})
