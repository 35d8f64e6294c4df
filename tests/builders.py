"""Events as an engine pair and a proxy would send them, with numbers that are easy to reckon with.

One ``Pair`` is a whole deployment: P, D, their workers and a proxy. Times are milliseconds; every process's clock
begins at 0 when the test does, wall time is ``EPOCH_NS`` plus that.
"""

from __future__ import annotations

from typing import Any

import msgspec

from turnscope import marks
from turnscope.marks import Keys
from turnscope.model import (
    Attempt,
    Body,
    Emitter,
    Engine,
    EngineState,
    Event,
    Handle,
    Heartbeat,
    Hold,
    HoldUse,
    Request,
    Transfer,
)
from turnscope.semconv import Direction, HoldKind, Leg, TransferState, turn_key

MS = 1_000_000
SECOND = 1000 * MS
EPOCH_NS = 1_700_000_000 * SECOND
BLOCK_TOKENS = 16
BLOCK_BYTES = 2_097_152
STOP = 151_645
"""The token that ends a message."""
KEYS = Keys(b"secret", stops=[STOP])

P = Engine(
    id="p",
    generation="p-1",
    role="prefill",
    model="toy",
    connector="NixlConnector",
    block_size=BLOCK_TOKENS,
    block_bytes=BLOCK_BYTES,
    bidirectional=True,
    recompute_threshold=64,
    lease_ns=30 * SECOND,
    load_failure_policy="fail",
)
D = msgspec.structs.replace(P, id="d", generation="d-1", role="decode", hold_ttl_ns=480 * SECOND)


class Process:
    """One process with a hook: numbers its events."""

    def __init__(self, emitter_id: str, kind: str, engine: Engine | None, host: str = "host") -> None:
        self.emitter = Emitter(id=emitter_id, kind=kind, pid=1, host=host, version="0")
        self.engine = engine
        self.seq = 0

    def say(self, body: Body, at_ms: int) -> Event:
        """The next event, sent at ``at_ms``."""
        self.seq += 1
        at = at_ms * MS
        return Event(
            emitter=self.emitter,
            engine=self.engine,
            seq=self.seq,
            wall_ns=EPOCH_NS + at,
            mono_ns=at,
            body=body,  # type: ignore[arg-type]
        )

    def started(self, at_ms: int = 0) -> Event:
        """The hook is active."""
        return self.say(EngineState(state="started", wrapped=["scheduler"]), at_ms)

    def beat(
        self,
        at_ms: int,
        *,
        open: list[str] | None = None,
        idle: dict[str, tuple[str, str]] | None = None,
        dropped: int = 0,
        errors: int = 0,
    ) -> Event:
        """A heartbeat. ``idle``: requests that take no step, each with (P engine, P request) of its turn; they are open
        as well."""
        body = Heartbeat(
            last_seq=self.seq + 1,
            dropped=dropped,
            errors=errors,
            open_requests=[*(open or []), *(idle or {})],
            idle_requests=list(idle or {}),
            idle_turns=[turn_key(*turn).hex() for turn in (idle or {}).values()],
        )
        return self.say(body, at_ms)


def request(request_id: str = "p1", *, leg: Leg = Leg.PREFILL, prompt: int = 1000, **fields: Any) -> Request:
    """An engine request that computed whatever it did not find: local + external + computed = prompt."""
    local, external = fields.get("local_hit_tokens", 0), fields.get("external_tokens", 0)
    defaults: dict[str, Any] = {
        "input_tokens": prompt,
        "output_tokens": 1 if leg is Leg.PREFILL else 200,
        "local_hit_tokens": local,
        "external_tokens": external,
        "computed_tokens": prompt - (local or 0) - (external or 0),
        "stats_sent": True,
        "finish_reason": "length" if leg is Leg.PREFILL else "stop",
        "added_mono_ns": 0,
    }
    return Request(request_id=request_id, leg=leg, **{**defaults, **fields})


def read(
    direction: Direction,
    *,
    local: str,
    remote: tuple[str, str],
    state: TransferState = TransferState.DONE,
    **fields: Any,
) -> Transfer:
    """One rank's read for the request ``local`` from ``remote`` = (engine, request)."""
    return Transfer(
        request_id=local,
        direction=direction,
        state=state,
        remote_engine_id=remote[0],
        remote_request_id=remote[1],
        **fields,
    )


class Pair:
    """P, D, one worker of each, and a proxy with its hook (``proxy=False``: without). ``p_ids``: what P makes of the
    name of a turn."""

    def __init__(self, p: Engine = P, d: Engine = D, *, proxy: bool = True, p_ids: str = "p{}") -> None:
        self.p_ids = p_ids
        self.p = Process("00000000000000a1", "engine", p)
        self.pw = Process("00000000000000a2", "worker", msgspec.structs.replace(p, rank=0))
        self.d = Process("00000000000000b1", "engine", d)
        self.dw = Process("00000000000000b2", "worker", msgspec.structs.replace(d, rank=0))
        self.proxy = Process("00000000000000c1", "proxy", None) if proxy else None

    @property
    def processes(self) -> list[Process]:
        """All of them."""
        return [p for p in (self.p, self.pw, self.d, self.dw, self.proxy) if p is not None]

    def start(self, at_ms: int = 0) -> list[Event]:
        """Every process says that its hook is active."""
        return [process.started(at_ms) for process in self.processes]

    def beats(self, until_ms: int, every_ms: int = 60_000) -> list[Event]:
        """Every process's heartbeats: without them an engine is missed after two minutes."""
        return [process.beat(at) for at in range(every_ms, until_ms, every_ms) for process in self.processes]

    def handle(self, n: str, tokens: int | None = None) -> Handle:
        """What D returned for turn ``n``."""
        blocks = -(-tokens // BLOCK_TOKENS) if tokens is not None else None
        return Handle(engine_id=self._id(self.d), request_id=f"d{n}", tokens=tokens, blocks=blocks, expiry_s=480.0)

    def p_handle(self, n: str, tokens: int) -> Handle:
        """What P returned for turn ``n``."""
        return Handle(
            engine_id=self._id(self.p),
            request_id=self.p_ids.format(n),
            tokens=tokens,
            blocks=-(-tokens // BLOCK_TOKENS),
        )

    def _id(self, process: Process) -> str:
        assert process.engine is not None
        return process.engine.id

    def turn(
        self,
        n: str,
        *,
        at_ms: int = 0,
        prompt: int = 1000,
        local: int = 0,
        fetched: int = 0,
        output: int = 200,
        given: Handle | None = None,
        session: str | None = "s",
        streamed: bool = True,
        handle_seen: bool = True,
        decode_finish: str = "stop",
        attempt: dict[str, Any] | None = None,
        prefill: dict[str, Any] | None = None,
        decode: dict[str, Any] | None = None,
    ) -> list[Event]:
        """All events of one turn: P leg 400 ms from ``at_ms``, D leg 500 ms after, first byte at 600 ms.

        ``n`` names it: P's request is ``p<n>``, D's ``d<n>``. ``given`` is the handle of an earlier turn; with
        ``fetched`` its blocks were read.
        """
        p_id, d_id, held = self.p_ids.format(n), f"d{n}", prompt + output - 1
        handoff = self.p_handle(n, prompt)
        left = self.handle(n, held) if decode_finish in ("stop", "length") else None
        events = []
        if given is not None and fetched:
            body = read(
                Direction.REVERSE_FETCH,
                local=p_id,
                remote=(given.engine_id, given.request_id),
                bytes=-(-fetched // BLOCK_TOKENS) * BLOCK_BYTES,
                duration_ns=40 * MS,
                started_mono_ns=(at_ms + 60) * MS,
            )
            events.append(self.pw.say(body, at_ms + 100))
            events += self.released(given.request_id, at_ms + 100)
        events += [
            self.p.say(
                request(
                    p_id,
                    **{
                        "prompt": prompt,
                        "local_hit_tokens": local,
                        "external_tokens": fetched,
                        "added_mono_ns": at_ms * MS,
                        "scheduled_mono_ns": (at_ms + 10) * MS,
                        "handle_in": given,
                        "handle_out": handoff,
                        **(prefill or {}),
                    },
                ),
                at_ms + 400,
            ),
            self.p.say(
                Hold(request_id=p_id, kind=HoldKind.LEASE, phase="held", tokens=prompt, ttl_ns=30 * SECOND), at_ms + 400
            ),
        ]
        if given is not None:
            use = HoldUse(
                request_id=p_id,
                handle=given,
                input_tokens=prompt,
                local_hit_tokens=local,
                external_tokens=fetched,
                processed=True,
            )
            events.append(self.p.say(use, at_ms + 400))
        events.append(
            self.dw.say(
                read(
                    Direction.HANDOFF,
                    local=d_id,
                    remote=(self._id(self.p), p_id),
                    bytes=-(-prompt // BLOCK_TOKENS) * BLOCK_BYTES,
                    duration_ns=20 * MS,
                    started_mono_ns=(at_ms + 430) * MS,
                ),
                at_ms + 450,
            )
        )
        events.append(
            self.pw.say(
                Hold(request_id=p_id, kind=HoldKind.LEASE, phase="released", readers_expected=1, readers_seen=1),
                at_ms + 450,
            )
        )
        events.append(
            self.d.say(
                request(
                    d_id,
                    leg=Leg.DECODE,
                    prompt=prompt,
                    **{
                        "external_tokens": prompt - 1,
                        "output_tokens": output,
                        "finish_reason": decode_finish,
                        "added_mono_ns": (at_ms + 415) * MS,
                        "handle_in": handoff,
                        "handle_out": left,
                        **(decode or {}),
                    },
                ),
                at_ms + 900,
            )
        )
        if left is not None:
            events.append(self.held(d_id, held, at_ms + 900))
        if self.proxy is not None:
            fields: dict[str, Any] = {
                "proxy_turn_id": f"t{n}",
                "session_id": session,
                "session_source": "body.conversation_id" if session else None,
                "prefill": handoff,
                "handle_given": given,
                "handle_out": left if handle_seen else None,
                "prefill_status": 200,
                "decode_status": 200,
                "status_code": 200,
                "streamed": streamed,
                "finish_reason": "stop",
                "started_wall_ns": EPOCH_NS + at_ms * MS,
                "started_mono_ns": at_ms * MS,
                "prefill_start_ns": 0,
                "prefill_end_ns": 400 * MS,
                "decode_start_ns": 415 * MS,
                "first_byte_ns": 600 * MS,
                "last_byte_ns": 900 * MS,
            }
            events.append(self.proxy.say(Attempt(**{**fields, **(attempt or {})}), at_ms + 900))
        return events

    def digests(
        self,
        n: str,
        prompt: list[int],
        answer: list[int],
        at_ms: int,
        *,
        anchor: int | None = None,
        keys: Keys = KEYS,
        legs: str = "pd",
    ) -> list[Event]:
        """What P and D send of turn ``n``'s tokens; of its answer, D has no KV of the last one. ``anchor``: the length
        of the handle that P was given. ``legs``: whose are sent."""
        held = [*prompt, *answer[:-1]]
        size = len(prompt)
        p_id = self.p_ids.format(n)
        of_p = marks.digest(prompt, keys, request_id=p_id, leg=Leg.PREFILL, input_tokens=size, anchor_tokens=anchor)
        of_d = marks.digest(held, keys, request_id=f"d{n}", leg=Leg.DECODE, input_tokens=size, anchor_tokens=len(held))
        said = {"p": (self.p, of_p), "d": (self.d, of_d)}
        return [said[leg][0].say(said[leg][1], at_ms) for leg in legs]

    def held(self, request_id: str, tokens: int, at_ms: int) -> Event:
        """D holds a finished request's blocks."""
        blocks = -(-tokens // BLOCK_TOKENS)
        body = Hold(
            request_id=request_id,
            kind=HoldKind.HOLD,
            phase="held",
            tokens=tokens,
            blocks=blocks,
            bytes=blocks * BLOCK_BYTES,
            ttl_ns=self.d.engine.hold_ttl_ns if self.d.engine is not None else None,
        )
        return self.d.say(body, at_ms)

    def released(self, request_id: str, at_ms: int) -> list[Event]:
        """Each of D's ranks got its readers' notices."""
        return [self._step(request_id, "released", at_ms, readers_expected=1, readers_seen=1)]

    def expired(self, request_id: str, at_ms: int) -> list[Event]:
        """Each of D's ranks gave the hold up."""
        return [self._step(request_id, "expired", at_ms, readers_seen=0)]

    def late_notice(self, request_id: str, at_ms: int) -> list[Event]:
        """A reader's notice came when D knew the hold no more."""
        return [self._step(request_id, "late_notice", at_ms)]

    def _step(self, request_id: str, phase: str, at_ms: int, **fields: Any) -> Event:
        return self.dw.say(Hold(request_id=request_id, kind=HoldKind.HOLD, phase=phase, **fields), at_ms)
