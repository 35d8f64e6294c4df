"""Everything assembly remembers: plain structs, so that a checkpoint is one encode.

They are trees. What there are many of is out of the garbage collector's sight (``gc=False``): it would look through all
of them again and again for cycles that there cannot be.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from turnscope.assembly.cache_state import Cache
from turnscope.assembly.knowledge import Ending
from turnscope.assembly.moments import Moment
from turnscope.assembly.nodes import NodeState
from turnscope.assembly.rate import Estimate, Rate
from turnscope.assembly.sources import ClockState, EmitterState, EngineState, Offset
from turnscope.assembly.span_state import SpansState
from turnscope.marks import Shared
from turnscope.model import Attempt, Digest, Handle, HoldRecord, HoldUse, Request, Transfer, Turn
from turnscope.semconv import ContinuityEvidence, HoldKind, MismatchEvidence, StuckCause


# --- turns --------------------------------------------------------------------------------------------
class EndedRequest(msgspec.Struct, kw_only=True, gc=False):
    """A request that ended, with the process that said so."""

    engine_id: str
    generation: str
    wall_ns: int
    mono_ns: int
    clock: str = ""
    request: Request

    @property
    def started_wall_ns(self) -> int:
        """When the engine accepted it."""
        return self.wall_ns - (self.duration_ns or 0)

    @property
    def duration_ns(self) -> int | None:
        """From then to its end; None when the engine's clock says that it ended before."""
        lasted = self.mono_ns - self.request.added_mono_ns
        return lasted if lasted >= 0 else None


class Read(msgspec.Struct, kw_only=True, gc=False):
    """One rank's read."""

    engine_id: str
    wall_ns: int
    mono_ns: int
    clock: str = ""
    host: str = ""
    rank: int | None = None
    transfer: Transfer


class Told(msgspec.Struct, array_like=True):
    """A digest, and when it arrived."""

    since_ns: int
    digest: Digest


class Mismatch(NamedTuple):
    """At least one reused token is suspected, on P or on D."""

    evidence: MismatchEvidence
    on_prefill: Shared | None
    """From where on P's KV of the prompt is wrong; everything computed after it was computed on wrong KV."""
    on_decode: Shared
    """And D's, who has it from P or from its own cache."""
    suspect: int
    """Tokens that P reused past that point, local hits and fetched ones: the most that it can be."""


class Verdict(msgspec.Struct, kw_only=True, gc=False):
    """How a turn's prompt continues what was there before it. All positions are tokens from its beginning."""

    evidence: ContinuityEvidence = ContinuityEvidence.UNKNOWN
    against: str = ""
    """Equal for verdicts on comparisons with the same earlier turns."""
    continues: Shared | None = None
    """Against what D holds for it, else against the previous turn; None when they cannot be compared."""
    of_hold: bool = False
    """It was compared with what the given handle stands for."""
    before: int | None = None
    """So many tokens at least had been computed before in the session, beginning included; None: nothing tells."""
    here: int = 0
    """So many of them in prompts of this start of this P."""
    elsewhere: int = 0
    """So many in prompts of another P, or of an earlier start."""
    rewritten: int | None = None
    """Computed tokens past ``before`` that were seen at another place; None where nothing was compared."""
    wrong_hold: Shared | None = None
    """The turn that left the hold had wrong KV from here on."""
    wrong_hit: Shared | None = None
    """P's local hit is of blocks that an earlier mismatch had filed wrongly, from here on."""
    wrong_decode: Shared | None = None
    """D's local hit is."""
    mismatch: Mismatch | None = None
    """What all this makes of what the turn reused; caches and holds are noted as wrong accordingly."""


class StandsStill(msgspec.Struct, kw_only=True):
    """A request of a turn that an engine will never run, or that has taken no step for longer than the limit."""

    stage: str
    """``prefill, handoff, decode``."""
    cause: StuckCause
    request_id: str
    wall_ns: int
    """Since when, as far as known."""
    handle: Handle | None = None
    """D's, that was to be read."""


class Price(msgspec.Struct, kw_only=True):
    """What a turn's recomputed tokens cost, as first worked out."""

    tokens: int
    recompute: Estimate | None
    """None: the engine's rate was not known."""
    refetch: Estimate
    measured: bool
    """``refetch`` is by the engine's own fetches; else assumed."""


class TurnState(msgspec.Struct, kw_only=True, gc=False):
    """What is known of one turn, or of one attempt of it."""

    turn_id: str
    first_ns: int
    last_ns: int
    due_ns: int = 0
    """When it is looked at next."""
    ready_ns: int | None = None
    ran: bool = False
    """Something worked on it when it was last due."""
    prefill_engine_id: str | None = None
    prefill_request_id: str | None = None
    decode_engine_id: str | None = None
    decode_request_id: str | None = None
    """Known from a read before the D leg has ended."""
    prefill: EndedRequest | None = None
    """The P leg, or on an aggregated engine the whole request."""
    samples: list[EndedRequest] = []
    """Other samples (n > 1) of the P leg: the same prompt, each a request to the engine."""
    decodes: list[EndedRequest] = []
    """By end; so are the reads."""
    reads: list[Read] = []
    hold_use: HoldUse | None = None
    attempt: Attempt | None = None
    stuck: StandsStill | None = None
    left_open: str | None = None
    """The stage (``handoff, decode``) where it was last seen when it was counted though no end of it had come."""
    attempt_clock: str = ""
    join: str = "exact"
    counted: bool = False
    """Finalised: nothing of it is ever counted again."""
    closed: str | None = None
    """How: ``turn, attempt`` (of a turn counted elsewhere) or ``fragment``."""
    revision: int = 0
    rate: Rate | None = None
    """What its engines were known to need when it was counted: later measurements change no row."""
    usual_step_ns: int | None = None
    price: Price | None = None
    """None while it is not known that it recomputed any."""
    late: bool = False
    suspicions: list[str] = []
    withdrawn: list[str] = []
    verdict: Verdict | None = None
    """None until it is first closed."""
    caller_session: str | None = None
    """Of the agent's span that called, where its own request names none."""
    row: Turn | None = None
    transports: dict[str, tuple[str, str]] = {}
    """``fetch`` and ``handoff`` to transport and what says so: decided once, while the cards' looks are remembered."""


class AttemptRef(msgspec.Struct, array_like=True, gc=False):
    """One attempt of a client request."""

    turn_id: str
    used_hold: str | None
    final: bool


class ProxyTurn(msgspec.Struct, kw_only=True):
    """One client request, as a proxy counts it."""

    last_ns: int
    attempts: dict[int, AttemptRef] = {}


# --- holds --------------------------------------------------------------------------------------------
class Report(msgspec.Struct, array_like=True, gc=False):
    """One rank's word on the end of a hold."""

    expired: bool
    wall_ns: int
    mono_ns: int
    clock: str
    readers_seen: int | None
    readers_expected: int | None


class HoldState(msgspec.Struct, kw_only=True, gc=False):
    """What is known of one hold or lease."""

    hold_id: str
    kind: HoldKind
    engine_id: str
    generation: str
    request_id: str
    last_ns: int
    due_ns: int | None = None
    """None while it is held and nothing is awaited."""
    held_ns: int | None = None
    """Arrival of the news that it is held; None when it never came."""
    held_wall_ns: int | None = None
    held_at: Moment | None = None
    tokens: int | None = None
    blocks: int | None = None
    bytes: int | None = None
    ttl_ns: int | None = None
    ranks: int = 1
    reports: dict[str, Report] = {}
    late_notices: int = 0
    last_notice: Moment | None = None
    """The last late one."""
    read_late: bool = False
    """Counted as such."""
    lost_wall_ns: int | None = None
    """When its holder ended, as far as that was seen."""
    lost_at: Moment | None = None
    counted: bool = False
    fragment: bool = False
    revision: int = 0
    outcome: str | None = None
    row: HoldRecord | None = None

    @property
    def complete(self) -> bool:
        """Every rank has spoken."""
        return len(self.reports) >= self.ranks

    @property
    def ended_at(self) -> Moment | None:
        """Observed end: the last rank's release of those on the scheduler's clock, or its holder's end."""
        if not self.complete:
            return self.lost_at
        clock = self.held_at.clock if self.held_at is not None else ""
        times = [r.mono_ns for r in self.reports.values() if r.clock == clock]
        return Moment(clock, max(times)) if times else None

    @property
    def ended_wall_ns(self) -> int | None:
        """Observed end: the last rank's release, or the holder's."""
        if self.reports:
            return max(report.wall_ns for report in self.reports.values())
        return self.lost_wall_ns


class HandleState(msgspec.Struct, kw_only=True, gc=False):
    """The life of one of D's handles."""

    last_ns: int
    generation: str | None = None
    """Of D, when it made it."""
    tokens: int | None = None
    steps: dict[str, int] = {}
    """``<step> <observer>`` to the wall time of the first event that told of it."""


# --- what needs several turns -------------------------------------------------------------------------
class Past(msgspec.Struct, kw_only=True, gc=False):
    """What later turns of a session ask of an earlier one."""

    turn_id: str
    started_ns: int
    ended_ns: int | None
    ended_at: Moment | None = None
    ending: Ending | None
    """None when nothing tells."""
    left_hold: str | None
    handle_seen: bool | None
    """The proxy saw a handle in D's answer; None without its word."""
    decode_engine_id: str | None
    decode_bidirectional: bool | None
    whole: bool
    """Served by an aggregated engine."""
    prefill: tuple[str, str] | None = None
    """The engine and its start that computed the prompt; None when none did."""
    prompt_tokens: int = 0
    digests: list[str] = []
    """Keys of the digests of what was computed, D's before P's; empty when nothing was."""
    shape: str | None
    """Of its messages, by role and length, and of its prompt: equal for one that is sent again."""
    agent_id: str | None = None


class SessionState(msgspec.Struct, kw_only=True):
    """The turns of one session, by start."""

    source: str
    last_ns: int
    turns: list[Past] = []
    forgotten: int = 0
    """Turns before the first in ``turns``."""
    forgotten_until: tuple[int, str] | None = None
    """Begin and id of the last of them."""


class Use(msgspec.Struct, array_like=True, gc=False):
    """One P leg that was given a hold's handle."""

    turn_id: str
    started_ns: int
    read: bool | None
    """It fetched; False: it only told the holder, or read nothing; None when unknown."""
    read_ns: int | None = None
    """Wall time at which its read was found to be done, by the reader's clock."""


class State(msgspec.Struct, kw_only=True):
    """The whole."""

    now_ns: int = 0
    pruned_ns: int = 0
    emitters: dict[str, EmitterState] = {}
    proxies: list[str] = []
    """Emitters that are proxies: asked for at every event."""
    engines: dict[str, EngineState] = {}
    clocks: dict[str, ClockState] = {}
    offsets: dict[str, dict[str, Offset]] = {}
    """Clock to the clocks compared with it: what those show, less what it shows."""
    names: dict[str, str] = {}
    """Bounded engine name to the id of the engine that has it."""
    holders: dict[str, list[str]] = {}
    """Name of a reader to the names of the holders that it is told apart with."""
    places: dict[str, str] = {}
    """``host:side channel port`` to the engine that listens there."""
    turns: dict[str, TurnState] = {}
    old_turns: dict[str, tuple[int, bytes]] = {}
    """Counted: when, and the encoded ``TurnState``."""
    joined: dict[str, tuple[int, int]] = {}
    """Taken into another turn: when, and the revision of the last row that was handed out of it by itself."""
    holds: dict[str, HoldState] = {}
    old_holds: dict[str, HoldState] = {}
    handles: dict[str, HandleState] = {}
    """D's handles, by the ids of their holds."""
    proxy_turns: dict[str, ProxyTurn] = {}
    named: dict[str, list[str]] = {}
    """The ``X-Request-Id`` in an engine's request id to the turns of the P legs that have it."""
    unplaced: dict[str, list[str]] = {}
    """``X-Request-Id`` to attempts that did not name their P leg."""
    spans: SpansState = msgspec.field(default_factory=SpansState)
    """Of agents."""
    sessions: dict[str, SessionState] = {}
    session_of: dict[str, str] = {}
    """Turn to session."""
    left_by: dict[str, str] = {}
    """Hold to the turn that left it."""
    uses: dict[str, list[Use]] = {}
    """Hold to the turns that were given its handle."""
    digests: dict[str, Told] = {}
    """By turn (P's, or the whole request's) or by hold (D's), oldest first."""
    digest_bytes: int = 0
    awaited: dict[str, list[str]] = {}
    """Key of a digest that was missed to the turns that missed it."""
    caches: dict[str, Cache] = {}
    """By engine and generation."""
    wrong_holds: dict[str, tuple[str, Shared]] = {}
    """Holds that have wrong KV: the turn that left it, and from where on."""
    tallied: dict[str, int] = {}
    """Emitter to the number of its events whose tallies are in the journal."""
    counted: dict[str, int] = {}
    """Keys in the journal: they contribute nothing again."""
    nodes: dict[str, NodeState] = {}
    prefills: int = 0
    """Prefill requests ended, of all engines."""
    suspicions: dict[str, int] = {}
    explained: dict[str, int] = {}
    """``<hooks> <yes or no>`` to turns."""
    continuity: dict[str, int] = {}
    attempts: int = 0
    attempts_without_session: int = 0
    direct_requests: int = 0
    """Taken for no turn: sent straight to an engine."""
