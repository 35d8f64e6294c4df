"""The labels, their closed vocabularies, the buckets, and which label sets are legal."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Mapping

from turnscope.catalog.metric import Kind, Label, Metric
from turnscope.semconv import (
    Direction,
    EventName,
    HoldKind,
    HoldOutcome,
    Path,
    Reason,
    Role,
    Suspicion,
    TransferState,
    Transport,
)

NO_ENGINE = "none"
"""The ``engine`` of what reached no engine, or none that a hook told of."""
SHARED_NAMES = frozenset(f"{role}-other" for role in Role)
"""The ``engine`` of all engines of a role for which no name was left."""

OTHER_HOLDER = "other"
"""The ``holder`` of all engines beyond those that one reader tells apart."""
PAIR_STATES = (TransferState.DONE, TransferState.FAILED, TransferState.HANDSHAKE_FAILED)
"""What tells of the way between two engines: what was declined, or only noticed, says nothing of it."""

FINISH_REASONS = ("stop", "length", "abort", "error", "repetition", "other")
EMITTER_KINDS = ("engine", "worker", "proxy", "collector", "other")
REQUEST_SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
EXPIRED = ("hold", "lease", "declined")
ENTITIES = ("turn", "hold")
FRAGMENTS = ("attempt", "decode", "transfer", "hold", "direct")
YES_NO = ("yes", "no")
HOOKS = ("both", "engines", "proxy")
REPEATS = ("retry", "fork")
CARDS = ("efa", "ethernet")
RANKS = ("all", "some", "unknown")
TTFT_PARTS = ("proxy", "queue", "reverse_fetch", "prefill", "handoff", "first_step", "unattributed")
CONTEXTS = ("0-1023", "1024-4095", "4096-16383", "16384-65535", "65536-262143", "262144-")
"""Lengths of a prompt in tokens, each class four times as wide as the one before it."""
OPPORTUNITIES = ("taken", "missed", "none", "unknown")
WORTH = ("gained", "lost", "undecided", "unknown")

_NEVER = frozenset({(Role.PREFILL, Direction.UNKNOWN), (Role.DECODE, Direction.UNKNOWN)}) | {
    (Role.DECODE, Direction.REVERSE_FETCH)
}
"""Transfers that a hook never tells of in such an engine. In push mode it is P that tells of handoffs."""
MAX_TEXT = 100
"""Characters of a label with free text."""
_FETCHED = frozenset({Path.REVERSE_FETCH, Path.MIXED})
_NEVER_MEASURED = frozenset({Reason.REJECTED_BY_FRONTEND, Reason.STUCK})
_NEEDS_SPLIT = frozenset({Reason.LOCAL_HIT_COVERS, Reason.BELOW_THRESHOLD})

_CONTEXT_ENDS = tuple(int(name.partition("-")[2]) for name in CONTEXTS[:-1])


def context(tokens: int) -> str:
    """The class of a prompt of ``tokens`` tokens."""
    return CONTEXTS[bisect.bisect_left(_CONTEXT_ENDS, tokens)]


# --- labels
ENGINE = Label("engine")
PATH = Label("path", tuple(Path))
DIRECTION = Label("direction", tuple(Direction))
TURN_DIRECTION = Label("direction", (Direction.HANDOFF, Direction.REVERSE_FETCH))
"""Of a turn's own transfers, by the leg that read."""
HOLD = (Label("kind", tuple(HoldKind)), Label("outcome", tuple(HoldOutcome)))
EMITTER_KIND = Label("emitter_kind", EMITTER_KINDS)
EVENT = Label("event", tuple(str(event).removeprefix("turnscope.") for event in EventName))
NODE = Label("node")
COUNTER = Label("counter")
CARD = Label("card", CARDS)
TRANSPORT = Label("transport", tuple(Transport))
SUSPICION = Label("kind", tuple(Suspicion))

SECONDS = (0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 40.0, 80.0)
PREFILL_SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 40.0)
PART_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TRANSFER_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
HOLD_SECONDS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0)
GAP_SECONDS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1800.0, 3600.0)
DURATION_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
TASK_SECONDS = (0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)

PREFILLS = (Role.PREFILL, Role.BOTH, Role.AGGREGATED)
DECODES = (Role.DECODE, Role.BOTH, Role.AGGREGATED)


def label_text(text: str) -> str:
    """Free text as a label has it: without what cannot be printed, and cut."""
    return "".join(c if c.isprintable() else "_" for c in text).strip()[:MAX_TEXT]


def legal(path: Path, reason: Reason) -> bool:
    """Whether a turn can have this path and this reason: ``none`` belongs to what was fetched, and only to that."""
    if path in _FETCHED:
        return reason is Reason.NONE
    if reason is Reason.NONE:
        return False
    if path is Path.UNKNOWN:
        return reason not in _NEEDS_SPLIT
    if path is Path.RECOMPUTE and reason is Reason.LOCAL_HIT_COVERS:
        return False
    return reason not in _NEVER_MEASURED


def label_sets(metric: Metric, engines: Mapping[str, Role]) -> Iterator[tuple[str, ...]]:
    """Every label set that ``metric`` can have with these engines (name to role): exported at 0 from the start.

    An ``info`` has none, its values are free, nor has a sparse metric; ``engine`` also takes ``none`` where a turn may
    reach no engine. Nodes and their counters are met one by one: assembly hands theirs out at 0.
    """
    if metric.kind is Kind.INFO or metric.sparse or {NODE, COUNTER}.intersection(metric.labels):
        return
    names = tuple(name for name, role in engines.items() if role in metric.roles)
    axes = [label.values if label.values is not None else (*names, *_outside(metric)) for label in metric.labels]
    for values in itertools.product(*axes):
        named = dict(zip(metric.label_names, values, strict=True))
        if _can_be(named, engines.get(named.get("engine", ""))):
            yield values


def _can_be(named: Mapping[str, str], role: Role | None) -> bool:
    """Whether anything is counted under these labels of an engine of that role."""
    if {"path", "reason"} <= named.keys() and not legal(Path(named["path"]), Reason(named["reason"])):
        return False
    return (role, named.get("direction")) not in _NEVER


def _outside(metric: Metric) -> tuple[str, ...]:
    return (NO_ENGINE,) if metric.outside or metric.owner == "turn shard" else ()
