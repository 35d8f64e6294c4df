"""The scheduler's side: one ``request`` event when the engine frees a request, its hold, and the handle it used.

Engine threads run the two wrappers made by ``attach``: they take references and push them. They are written for
speed: one flat function each, and no ``*args`` passed on when there are none. All else runs in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from time import monotonic_ns
from typing import Any, Final, NamedTuple

from turnscope.emit.guard import Guard
from turnscope.emit.ring import Rings
from turnscope.hook.digests import Digests, Ended
from turnscope.hook.emptying import watch_emptying
from turnscope.hook.engine_facts import find_nixl, nixl_side
from turnscope.hook.idle import Steps
from turnscope.hook.promises import cause, watch_promises
from turnscope.hook.values import block_counts, count, handle, named, seconds_to_ns, text
from turnscope.model import Digest, Emitter, Emptied, Engine, EngineState, Hold, HoldUse, Request, Stuck
from turnscope.semconv import HoldKind, Leg, turn_key

_NORMAL_ENDS: Final = frozenset({"stop", "length", "repetition"})
_NAMED: Final = ("remote_engine_id", "remote_request_id", "remote_host", "remote_port")
_TURNS: Final = 2
"""Turns' ids made without a pause."""
_SCHEDULED: Final = 2
"""``EngineCoreEventType.SCHEDULED``."""


class _Added(NamedTuple):
    """Kept while a request runs: what the connector will change, and what the engine will take away."""

    mono_ns: int | None
    """None where the first of ``events`` says it."""
    do_remote_decode: Any
    do_remote_prefill: Any
    prefill_stats: Any
    events: Any

    @property
    def added_ns(self) -> int:
        if self.mono_ns is not None:
            return self.mono_ns
        return seconds_to_ns(self.events[0].timestamp) or 0


class _Freed(NamedTuple):
    """What is read when a request ends. Of its tokens only what a digest needs, and no more of them than may wait."""

    request_id: str
    added: tuple[Any, ...]
    params: Any
    given: Any
    """What ``_free_request`` returned: this engine's own handle, or None."""
    status: Any
    stats_left: Any
    num_prompt_tokens: Any
    num_output_tokens: Any
    num_preemptions: Any
    arrival_time: Any
    trace_headers: Any
    session_id: Any
    skip_cache: Any
    kept: tuple[Any, ...] | None
    """For its digest."""


class SchedulerWatch:
    """Watches one scheduler. ``group_bytes`` and ``ranks`` size its holds; without ``digests`` none are made."""

    def __init__(
        self,
        *,
        rings: Rings,
        guard: Guard,
        emitter: Emitter,
        engine: Engine,
        group_bytes: list[int],
        ranks: int,
        digests: Digests | None = None,
    ) -> None:
        self.guard = guard
        self.emitter = emitter
        self.engine = engine
        self.wrapped = ["scheduler"]
        self._group_bytes = group_bytes
        self._ranks = ranks
        self._open: dict[str, tuple[Any, ...]] = {}
        self._requests: dict[str, Any] = {}
        self._steps = Steps()
        self._nixl: Any = None
        self._push_request = rings["request"].pusher(self.request)
        self._push_hold = rings["hold"].pusher(self.hold)
        self._push_use = rings["hold_use"].pusher(self.hold_use)
        self._digests = digests
        if digests is not None:
            digests.push = rings["digest"].pusher(self.digest)
        self._push_stuck = rings["stuck"].pusher(self.stuck)
        self._push_emptied = rings["emptied"].pusher(self.emptied)

    # --- engine thread --------------------------------------------------------------------------------
    def attach(self, scheduler: Any) -> None:
        """Wrap the two methods on the instance, the one of its NIXL connector that parks requests, and the one of its
        cache manager that empties the prefix cache."""
        self._requests = scheduler.requests
        self._nixl = nixl_side(find_nixl(getattr(scheduler, "connector", None)))
        if watch_promises(self._nixl, self.guard, self._push_stuck):
            self.wrapped.append("nixl_scheduler")
        if watch_emptying(getattr(scheduler, "kv_cache_manager", None), self.guard, self._push_emptied):
            self.wrapped.append("kv_cache_manager")
        scheduler.add_request = self._adding(scheduler, scheduler.add_request)
        scheduler._free_request = self._freeing(scheduler, scheduler._free_request)

    def _adding(self, scheduler: Any, original: Any) -> Any:
        guard, running, now = self.guard, self._open, monotonic_ns

        @wraps(original)
        def add_request(request: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(request, *args, **kwargs) if args or kwargs else original(request)
            if guard.on:
                try:
                    name = request.request_id
                    try:
                        phantom = request.abort_immediately
                    except AttributeError:  # older engines
                        phantom = False
                    # Not the next input of a streaming request, nor a phantom that only cleans up a remote hold.
                    if not phantom and scheduler.requests.get(name) is request:
                        params, events = request.kv_transfer_params, request.events
                        if params:
                            decode, prefill = params.get("do_remote_decode"), params.get("do_remote_prefill")
                        else:
                            decode = prefill = None
                        # An engine that keeps events has just asked the clock itself, and that takes a while.
                        running[name] = (None if events else now(), decode, prefill, request.prefill_stats, events)
                except Exception as error:
                    guard.failed(error)
            return result

        return add_request

    def _freeing(self, scheduler: Any, original: Any) -> Any:
        guard, running, keep = self.guard, self._open, self._digests.keeper() if self._digests is not None else None
        push_request, push_hold, push_use = self._push_request, self._push_hold, self._push_use

        @wraps(original)
        def free_request(request: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(request, *args, **kwargs) if args or kwargs else original(request)
            if guard.on:
                try:
                    name = request.request_id
                    added = running.pop(name, None)
                    if added is not None:
                        params = request.kv_transfer_params
                        given = result[0] if type(result) is tuple else result
                        prompt, output = request.num_prompt_tokens, len(request._output_token_ids)
                        try:
                            session, skip = request.session_id, request.skip_reading_prefix_cache
                        except AttributeError:  # older engines
                            session = getattr(request, "session_id", None)
                            skip = getattr(request, "skip_reading_prefix_cache", None)
                        freed = (
                            name, added, params, given, request.status, request.prefill_stats, prompt, output,
                            request.num_preemptions, request.arrival_time, request.trace_headers, session, skip,
                            None if keep is None else keep(request, prompt + output),
                        )  # fmt: skip
                        push_request(freed)
                        if given is not None and name in scheduler.requests and "do_remote_decode" in given:
                            push_hold(freed)
                        if params and added[1] and params.get("remote_block_ids") and named(params):
                            push_use(freed)
                except Exception as error:
                    guard.failed(error)
            return result

        return free_request

    # --- background thread ------------------------------------------------------------------------------
    def open_requests(self) -> list[str]:
        return list(self._open)

    def idle_requests(self, pause: Callable[[], None]) -> Iterator[tuple[str, str]]:
        names = self.open_requests()
        pause()
        for number, request in enumerate(self._steps.idle(names, self._requests, pause), 1):
            yield text(request.request_id) or "", self._turn(request)
            if number % _TURNS == 0:
                pause()

    def _turn(self, request: Any) -> str:
        """The turn's id: D's request is named by P's."""
        added = self._open.get(request.request_id)
        decodes = added is not None and _leg(_Added(*added)) is Leg.DECODE
        remote = handle(request.kv_transfer_params) if decodes else None
        if remote is not None:
            return turn_key(remote.engine_id, remote.request_id).hex()
        return turn_key(self.engine.id, text(request.request_id) or "").hex()

    def forget(self) -> None:
        self._open.clear()
        if self._digests is not None:
            self._digests.forget()

    def state(self, body: EngineState) -> EngineState:
        return body

    def request(self, payload: tuple[Any, ...]) -> Request:
        """The ``request`` event of a freed request."""
        freed = _Freed(*payload)
        added = _Added(*freed.added)
        if self._digests is not None and freed.kept is not None:
            self._digests.add(_ended(freed, _leg(added)), freed.kept)
        stats = _known(added.prefill_stats)
        reason = _finish_reason(freed.status)
        scheduled = next((event for event in added.events if event.type == _SCHEDULED), None)
        return Request(
            request_id=text(freed.request_id) or "",
            leg=_leg(added),
            session_id=text(freed.session_id),
            traceparent=text((freed.trace_headers or {}).get("traceparent")),
            input_tokens=count(freed.num_prompt_tokens) or 0,
            output_tokens=count(freed.num_output_tokens) or 0,
            computed_tokens=count(stats.num_computed_tokens) if stats else None,
            local_hit_tokens=count(stats.num_local_cached_tokens) if stats else None,
            external_tokens=count(stats.num_external_cached_tokens) if stats else None,
            # Engines before 0.28 take the statistics after this point, but always for an answer that ends by itself.
            stats_sent=bool(stats) and (freed.stats_left is None or reason in _NORMAL_ENDS),
            finish_reason=reason,
            preemptions=count(freed.num_preemptions) or 0,
            skip_cache=bool(freed.skip_cache),
            arrival_wall_ns=seconds_to_ns(freed.arrival_time),
            added_mono_ns=added.added_ns,
            scheduled_mono_ns=None if scheduled is None else seconds_to_ns(scheduled.timestamp),
            handle_in=handle(freed.params),
            handle_out=handle(freed.given),
        )

    def hold(self, payload: tuple[Any, ...]) -> Hold:
        """The ``hold`` event of a request whose blocks stay: for the next turn on D, for D on P."""
        freed = _Freed(*payload)
        kind = HoldKind.HOLD if freed.given.get("do_remote_decode") else HoldKind.LEASE
        blocks = block_counts(freed.given.get("remote_block_ids"))
        return Hold(
            request_id=freed.request_id,
            kind=kind,
            phase="held",
            tokens=count(freed.given.get("remote_num_tokens")),
            blocks=None if blocks is None else sum(blocks),
            bytes=self._hold_bytes(blocks),
            ttl_ns=self.engine.hold_ttl_ns if kind is HoldKind.HOLD else self.engine.lease_ns,
        )

    def _hold_bytes(self, blocks: list[int] | None) -> int | None:
        if blocks is None or len(blocks) != len(self._group_bytes):
            return None
        return self._ranks * sum(n * size for n, size in zip(blocks, self._group_bytes, strict=True))

    def hold_use(self, payload: tuple[Any, ...]) -> HoldUse:
        """The ``hold_use`` event of a P leg that was given D's handle."""
        freed = _Freed(*payload)
        stats = _known(_Added(*freed.added).prefill_stats)
        given = handle(freed.params)
        assert given is not None, "only pushed for a handle with an identity"
        return HoldUse(
            request_id=freed.request_id,
            handle=given,
            input_tokens=count(freed.num_prompt_tokens) or 0,
            local_hit_tokens=count(stats.num_local_cached_tokens) if stats else None,
            external_tokens=count(stats.num_external_cached_tokens) if stats else None,
            processed=bool(freed.params.get("_remote_blocks_processed"))
            and all(name in freed.params for name in _NAMED),
        )

    def stuck(self, payload: tuple[Any, ...]) -> Stuck:
        """The ``stuck`` event of a request whose load was promised and not queued."""
        request_id, promised, params, preemptions = payload
        return Stuck(
            request_id=text(request_id) or "",
            cause=cause(self._nixl, self.engine.bidirectional, params, preemptions),
            promised_tokens=count(promised),
            handle=handle(params),
        )

    def emptied(self, body: Emptied) -> Emptied:
        """The body itself: that the cache was emptied, and when, is all there is to say."""
        return body

    def digest(self, body: Digest) -> Digest:
        """The body itself: it is made by now."""
        return body


def _ended(freed: _Freed, leg: Leg) -> Ended:
    """What a freed request was, for its digest."""
    if leg is Leg.PREFILL:
        given = handle(freed.params)
        anchor = given.tokens if given is not None else None
    else:
        anchor = count(freed.given["remote_num_tokens"]) if _is_hold(freed.given) else None
    return Ended(
        request_id=text(freed.request_id) or "",
        leg=leg,
        input_tokens=count(freed.num_prompt_tokens) or 0,
        answer_tokens=count(freed.num_output_tokens) or 0,
        anchor_tokens=anchor,
    )


def _is_hold(given: Any) -> bool:
    return isinstance(given, dict) and bool(given.get("do_remote_decode")) and "remote_num_tokens" in given


def _known(stats: Any) -> Any:
    """The statistics, or None while the request was never scheduled: then all of them are 0."""
    return None if stats is None or stats.num_prompt_tokens == 0 else stats


def _leg(added: _Added) -> Leg:
    if added.do_remote_decode:
        return Leg.PREFILL
    return Leg.DECODE if added.do_remote_prefill else Leg.WHOLE


def _finish_reason(status: Any) -> str:
    """vLLM's FinishReason as text; its status in lower case where there is none."""
    reason = type(status).get_finished_reason(status)
    return str(getattr(status, "name", status)).lower() if reason is None else str(reason)
