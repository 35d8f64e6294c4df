"""What each panel of the Overview dashboard must show after a run, and while a pair was up.

Told by the run's store, turn by turn held against the client before (``live.verdict``), by the client itself, and by
the engines' own counters.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from live.agent import Session
from live.driver import TurnTruth
from live.engines import MODEL_NAME
from live.fronts import Front
from live.verdict import FETCHED, STATUS, Row
from turnscope.catalog import METRICS, NO_ENGINE
from turnscope.catalog.labels import EMITTER_KINDS, WORTH
from turnscope.measures import reconcile
from turnscope.semconv import Path, Reason, Role, Status, StuckCause, Suspicion

EVERY: Final = ".*"
CLOSE: Final = 1e-9
"""Of a figure: fractions are added up in another order, and rates are divided by what they are multiplied with."""
EXTERNAL: Final = "prompt tokens, external_kv_transfer"
SOURCES: Final = ("local_hit_tokens", "fetched_tokens", "external_tokens", "computed_tokens")


class Bound(NamedTuple):
    """What a series may show."""

    low: float
    high: float

    def has(self, value: float) -> bool:
        """Whether it may show this."""
        slack = CLOSE * max(abs(self.low), abs(self.high))
        return self.low - slack <= value <= self.high + slack

    def __str__(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


Expected = Mapping[str, Bound]
"""By the value of the panel's label; ``""`` where it has none."""


class EngineSet(NamedTuple):
    """How an engine was set."""

    name: str
    role: Role
    bidirectional: bool


@dataclass(frozen=True)
class Moment:
    """When a pair was up with everything around it, and nothing was under way."""

    at_s: float
    configuration: str
    front: Front
    engines: tuple[EngineSet, ...]
    since_s: float = 0.0
    """When that was begun which was done through this proxy."""


@dataclass(frozen=True)
class Facts:
    """What is known of a run, or of what one prefill engine did in it."""

    rows: Sequence[Row]
    """The store's turns."""
    truth: Sequence[TurnTruth] = ()
    scripted: Sequence[Session] = ()
    engines: Mapping[str, reconcile.Values] = field(default_factory=dict)
    """What engines counted themselves while their hooks were on."""
    unseen: Mapping[str, reconcile.Values] = field(default_factory=dict)
    """What they counted while hooks were off."""
    moments: Sequence[Moment] = ()
    begin_s: float = 0.0
    end_s: float = 0.0
    """Of the sidecar's first and last scrape."""
    engine: str = EVERY
    """The prefill engine that it is about."""

    @property
    def prefill_engines(self) -> list[str]:
        """All that turns went to."""
        return sorted({str(row["prefill_engine"]) for row in self.rows if row["prefill_engine"]})

    def of(self, engine: str) -> Facts:
        """Of one prefill engine: clients do not know which one they had."""
        rows = [row for row in self.rows if row["prefill_engine"] == engine]
        own = {name: values for name, values in self.engines.items() if name == engine}
        return replace(self, rows=rows, truth=(), scripted=(), engines=own, engine=engine)


# --- what each panel must show, over the whole run --------------------------------------------------------
def _exactly(counts: Mapping[str, float], words: Iterable[str]) -> Expected:
    return {str(word): Bound(counts.get(str(word), 0), counts.get(str(word), 0)) for word in words}


def _alone(value: float) -> Expected:
    return {"": Bound(value, value)}


def _counted(facts: Facts, name: str, words: Iterable[str]) -> Expected:
    return _exactly(Counter(str(row[name]) for row in facts.rows), words)


def _turns(facts: Facts) -> Expected:
    done = len(facts.truth) + sum(session.model_calls for session in facts.scripted)
    return _alone(done or len(facts.rows))


def _fetching(facts: Facts) -> Expected:
    return _alone(sum(row["path"] in FETCHED for row in facts.rows))


def _fetched(facts: Facts) -> Expected:
    """As prefill engines counted it themselves, where one did."""
    known = [values[EXTERNAL] for name, values in facts.engines.items() if name.startswith(Role.PREFILL)]
    return _alone(sum(known) if known else _sum(facts.rows, "fetched_tokens"))


def _share(facts: Facts) -> Expected:
    sums = [_sum(facts.rows, name) for name in SOURCES]
    return _alone(sum(sums[:3]) / sum(sums)) if any(sums) else {}


def _sum(rows: Iterable[Row], name: str) -> int:
    return sum(row[name] or 0 for row in rows)


def _obstacles(facts: Facts) -> Expected:
    counts = Counter(str(row["reason"]) for row in facts.rows)
    return _exactly(counts, [reason for reason in Reason if reason is not Reason.NONE and counts[reason]])


def _gain(facts: Facts) -> Expected:
    return _alone(_sum(facts.rows, "net_gain_ns") / 1e9)


def _worth(facts: Facts) -> Expected:
    return _exactly(Counter(_worth_of(row) for row in facts.rows if row["fetched_tokens"]), WORTH)


def _worth_of(row: Row) -> str:
    if row["net_gain_ns"] is None:
        return "unknown"
    return "gained" if row["net_gain_low_ns"] > 0 else "lost" if row["net_gain_high_ns"] < 0 else "undecided"


def _median(facts: Facts) -> Expected:
    """The bucket that it lies in: a histogram knows no better."""
    bounds = (0.0, *METRICS["turnscope_ttft_seconds"].buckets)
    found: dict[str, list[float]] = {}
    for row in facts.rows:
        if row["ttft_ns"] is not None:
            found.setdefault(str(row["path"]), []).append(row["ttft_ns"] / 1e9)
    out = {}
    for path, values in found.items():
        middle = sorted(values)[math.ceil(len(values) / 2) - 1]
        upper = min(bisect.bisect_left(bounds, middle), len(bounds) - 1)
        out[path] = Bound(bounds[upper - 1], bounds[upper])
    return out


def _suspicions(facts: Facts) -> Expected:
    return _exactly(Counter(str(kind) for row in facts.rows for kind in row["suspicions"]), Suspicion)


def _suspicions_by_engine(facts: Facts) -> Expected:
    found = Counter(str(row["prefill_engine"]) for row in facts.rows for _ in row["suspicions"])
    return _exactly(found, [facts.engine] if facts.engine != EVERY else [*facts.prefill_engines, NO_ENGINE])


def _none(_: Facts) -> Expected:
    return _alone(0)


def _stuck(facts: Facts) -> Expected:
    """Also attempts that stood still until the proxy gave them up: they have no row of their own."""
    causes = Counter(str(row["stuck_cause"]) for row in facts.rows if row["stuck_cause"])
    causes[StuckCause.BIDIRECTIONAL_OFF] += sum(row["reason"] == Reason.HANDLE_CONSUMED_BY_RETRY for row in facts.rows)
    return _exactly(causes, StuckCause)


def _ended(facts: Facts) -> Expected:
    if not facts.truth:
        return _counted(facts, "status", Status)
    counts = Counter(STATUS[turn.outcome] for turn in facts.truth)
    for session in facts.scripted:
        counts[Status.OK] += session.model_calls - session.given_up
        counts[Status.CANCELLED] += session.given_up
    return _exactly(counts, Status)


RUN: Final[Mapping[str, Callable[[Facts], Expected]]] = {
    "Turns": _turns,
    "Turns that fetched back from D": _fetching,
    "Prompt tokens fetched back": _fetched,
    "Share of prompt tokens not computed": _share,
    "Turns by where their prompt came from": partial(_counted, name="path", words=Path),
    "Why there was no (more) fetch": _obstacles,
    "Compute time saved by fetching": _gain,
    "Fetches by whether they were faster than computing": _worth,
    "Time to first token, median, by where the prompt came from": _median,
    "Turns whose answer may be wrong": _suspicions,
    "Suspicions withdrawn": _none,
    "Possibly wrong answers by prefill engine": _suspicions_by_engine,
    "Turns found to stand still, by cause": _stuck,
    "Turns by how they ended": _ended,
}
"""Of the whole run, by the panel's title."""


# --- and at a moment --------------------------------------------------------------------------------------
def _reached(_: Moment, __: Facts) -> Expected:
    return _alone(1)


def _processes(moment: Moment, _: Facts) -> Expected:
    """One worker an engine; the collector is the sidecar's own look at this host's cards."""
    proxies = int(moment.front is Front.HOOKED)
    engines = len(moment.engines)
    return _exactly({"engine": engines, "worker": engines, "proxy": proxies, "collector": 1}, EMITTER_KINDS)


def _settings(moment: Moment, _: Facts) -> Expected:
    """By engine, role, model and whether it is on; which version and connector it has is the environment's."""
    on = {True: "yes", False: "no"}
    return {f"{one.name},{one.role},{MODEL_NAME},{on[one.bidirectional]}": Bound(1, 1) for one in moment.engines}


def _still(moment: Moment, facts: Facts) -> Expected:
    """Its client has given it up, and it is still there."""
    given_up = [turn.started_wall_ns / 1e9 for turn in facts.truth if turn.outcome == "unanswered"]
    stuck = sum(moment.since_s <= at_s <= moment.at_s for at_s in given_up)
    return _exactly({"stuck": stuck}, ("running", "stuck"))


NOW: Final[Mapping[str, Callable[[Moment, Facts], Expected]]] = {
    "Sidecars that Prometheus reaches": _reached,
    "Processes with a hook, by kind": _processes,
    "Engines and how they are set": _settings,
    "Turns that stand still now": _still,
}
"""At each of the run's moments, by the panel's title."""
SHOWN: Final = {"Engines and how they are set": ("engine", "role", "model", "bidirectional")}
"""The labels that tell series apart, where a panel draws more."""
