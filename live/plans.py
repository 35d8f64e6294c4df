"""The pairs of a live run: how each is set, and what is done with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from live import agent, foreign, remedies, savings, troubles
from live.conversations import conversations
from live.engines import PairConfig
from live.fronts import Front
from live.stage import Stage

SEED = 7
SEEDS = range(20)
TOOLS = (
    *("--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
    *("--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}'),
)
"""With these an engine takes a request that names a tool to call, and its random weights come to an end of the call."""
AT_ONCE = 1
"""Sessions of the scripted agent: two cores that are busy otherwise give its own clock the lie."""
GIVE_UP_S = 15
"""A client of the pair that loses turns waits so long."""


@dataclass(frozen=True)
class Phase:
    """One thing that is done, and the proxy through which."""

    do: Callable[[Stage], None]
    front: Front = Front.HOOKED
    options: tuple[str, ...] = ()
    """For the proxy, where it is ours."""
    around_spare: bool = False
    """It knows nothing of the pair's second D."""
    calms: tuple[str, ...] = ()
    """Alerts that fired for what was done to the pair before, and must be quiet meanwhile."""

    @property
    def name(self) -> str:
        """What is done, in a word."""
        return self.do.__name__.strip("_").replace("_", " ")


@dataclass(frozen=True)
class Plan:
    """How a pair is set and what is done with it, one after the other."""

    config: PairConfig
    phases: tuple[Phase, ...]
    to_the_end: bool = True
    """Wait until D has dropped all that it holds, before the counts are compared."""
    with_cards: bool = False
    """The pair's node has network cards made of files."""


def _conversations(stage: Stage) -> None:
    stage.hold(conversations())


def _savings(stage: Stage) -> None:
    stage.say(f"{stage.config.name}: {savings.LEARNING + savings.TRIALS} sessions, each without reuse and with it")
    stage.hold(savings.sessions(SEED))


def _router(stage: Stage) -> None:
    stage.hold(foreign.behind_the_router())
    if stage.cards:
        stage.hold_with_cards(foreign.large)


def _bare(stage: Stage) -> None:
    stage.hold(foreign.behind_the_bare_proxy())


def _troubles(stage: Stage) -> None:
    stage.hold(troubles.single_troubles())
    stage.hold(troubles.random_troubles(SEED))


def _agent(stage: Stage) -> None:
    stage.say(f"{stage.config.name}: {len(SEEDS)} sessions of a scripted agent")
    held = agent.sessions(stage.config.name, stage.url, stage.sidecar.endpoint, SEEDS, at_once=AT_ONCE)
    stage.result.scripted += asyncio.run(held)


def _late(stage: Stage) -> None:
    stage.hold(troubles.late_under_recompute(), patience_s=GIVE_UP_S)


def _without_handles(stage: Stage) -> None:
    stage.hold(remedies.without_handles())


def _stopped(stage: Stage) -> None:
    """No handles, and what is wrong in prefix caches already goes too."""
    stage.empty_caches()
    _without_handles(stage)


def _prefill_off(stage: Stage) -> None:
    """Turns with a handle hang, whether or not hooks look on; the proxy gives them up and asks again."""
    stage.restart(stage.pair.prefill, bidirectional=False, threshold=remedies.THRESHOLD)
    stage.hold(remedies.asked_again("asked-again"))
    begin_s = stage.hold_unseen(remedies.asked_again("unseen"))
    stage.hold(remedies.asked_again("seen-again"))
    stage.calmed(("TurnscopeHookMissing",), begin_s)


def _mended(stage: Stage) -> None:
    begin_s = stage.restart(stage.pair.prefill, bidirectional=True)
    stage.hold(remedies.fetching("fetching"))
    stage.calmed((remedies.FEATURE_OFF, remedies.BELOW_THRESHOLD), begin_s)


def _crash(stage: Stage) -> None:
    stage.hold_over_a_crash(troubles.around_a_crash(), before_turn=3)


def _decode_off_and_on(stage: Stage) -> None:
    """D crashes, comes back with the feature off, and is mended."""
    stage.hold_over_a_crash(troubles.around_a_crash(), before_turn=3, bidirectional=False)
    stage.hold(troubles.decode_off())
    begin_s = stage.restart(stage.pair.decode, bidirectional=True)
    stage.hold(remedies.fetching("fetching-again"))
    stage.calmed((remedies.FEATURE_OFF,), begin_s)


def _every_other(stage: Stage) -> None:
    stage.hold(troubles.every_other_answer_by_the_spare())


def _around(stage: Stage) -> None:
    stage.hold(remedies.fetching("around"))


def _forgotten_early(stage: Stage) -> None:
    stage.hold(remedies.forgotten_early())


WRONG = ("TurnscopeKvMismatch", "TurnscopeReadAfterRelease", "TurnscopeHandleReused")
LATE = ("TurnscopeReadsDeclined", "TurnscopeReadAfterRelease")

# Prefix caching off on P emulates a miss, as the published benchmark does; on, it is the production baseline.
PLANS = (
    Plan(PairConfig("uncached", 0, prefix_caching=False), (Phase(_conversations), Phase(_savings))),
    Plan(PairConfig("cached", 1, prefix_caching=True), (Phase(_conversations),)),
    Plan(
        PairConfig("troubled", 2, prefix_caching=False),
        (
            Phase(_troubles),
            Phase(_stopped, options=remedies.NO_HANDLES, calms=(*WRONG, "TurnscopeReadsDeclined")),
            Phase(_forgotten_early, options=remedies.EARLY, calms=LATE),
        ),
    ),
    Plan(
        PairConfig("recomputing", 3, prefix_caching=False, load_failure_policy="recompute"),
        # Without a hook first: while one is heard of, a turn without its word is waited for.
        (
            Phase(_router, Front.ROUTER),
            Phase(_bare, Front.BARE),
            Phase(_late),
            Phase(_without_handles, options=remedies.NO_HANDLES, calms=("TurnscopeTurnsStuck",)),
        ),
        with_cards=True,
    ),
    # D's holds have to outlast its restart, or it would be their age that ends them.
    Plan(
        PairConfig("restarted", 4, prefix_caching=False, hold_ttl_s=600, arguments=TOOLS),
        (Phase(_agent), Phase(_crash)),
        to_the_end=False,
    ),
)

BY_NAME = (
    Plan(
        PairConfig("switched", 6, prefix_caching=False, hold_ttl_s=600, threshold=remedies.TOO_HIGH, arguments=TOOLS),
        (
            Phase(_agent),
            Phase(_prefill_off, options=remedies.GIVES_UP),
            Phase(_mended),
            Phase(_decode_off_and_on),
        ),
        to_the_end=False,
    ),
    # What is set otherwise has another layout of KV, and the handshake refuses it.
    Plan(
        PairConfig("routed", 5, prefix_caching=False, spare=("--dtype", "float32")),
        (
            Phase(_every_other),
            Phase(_around, around_spare=True, calms=("TurnscopeHandshakesFail",)),
        ),
    ),
)
"""Not part of a whole run, since they start engines again and again, or take a third one: ``python -m live
--configurations switched`` takes six minutes, ``routed`` two."""
