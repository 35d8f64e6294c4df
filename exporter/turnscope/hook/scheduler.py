"""The scheduler's side: one ``request`` event when the engine frees a request, its hold, and the handle it used.

Engine threads run ``added`` and ``freed``: they take references and push them. All else runs in the background.
"""

from __future__ import annotations

from operator import attrgetter
from time import monotonic_ns
from typing import Any, Final

from turnscope.hook.guard import Guard
from turnscope.hook.ring import Rings
from turnscope.hook.values import block_counts, count, handle, seconds_to_ns, text
from turnscope.model import Emitter, Engine, Hold, HoldUse, Request
from turnscope.semconv import HoldKind, Leg

_FIELDS: Final = (
    "request_id",
    "kv_transfer_params",
    "status",
    "prefill_stats",
    "num_prompt_tokens",
    "num_output_tokens",
    "num_preemptions",
    "skip_reading_prefix_cache",
    "arrival_time",
    "trace_headers",
    "session_id",
)
"""Read when a request is freed; those that this engine's requests have not are left out."""
_NORMAL_ENDS: Final = frozenset({"stop", "length", "repetition"})
_NAMED: Final = ("remote_engine_id", "remote_request_id", "remote_host", "remote_port")
_SCHEDULED: Final = 2
"""``EngineCoreEventType.SCHEDULED``."""


class SchedulerWatch:
    """Watches one scheduler. ``group_bytes`` and ``ranks`` size its holds."""

    def __init__(
        self, *, rings: Rings, guard: Guard, emitter: Emitter, engine: Engine, group_bytes: list[int], ranks: int
    ) -> None:
        self.guard = guard
        self.emitter = emitter
        self.engine = engine
        self.wrapped = ["scheduler"]
        self._group_bytes = group_bytes
        self._ranks = ranks
        self._open: dict[str, tuple[Any, ...]] = {}
        self._names: tuple[str, ...] = ()
        self._read: Any = None
        self._push_request = rings["request"].push
        self._push_hold = rings["hold"].push
        self._push_use = rings["hold_use"].push

    # --- engine thread --------------------------------------------------------------------------------
    def added(self, scheduler: Any, request: Any) -> None:
        """A request is in. What the connector will change, and what the engine will take away, is kept now."""
        request_id = request.request_id
        if scheduler.requests.get(request_id) is not request or getattr(request, "abort_immediately", False):
            return  # the next input of a streaming request, or a phantom that only cleans up a remote hold
        params = request.kv_transfer_params
        if not params:
            leg = Leg.WHOLE
        elif params.get("do_remote_decode"):
            leg = Leg.PREFILL
        else:
            leg = Leg.DECODE if params.get("do_remote_prefill") else Leg.WHOLE
        self._open[request_id] = (monotonic_ns(), leg, request.prefill_stats, request.events)

    def freed(self, scheduler: Any, request: Any, result: Any) -> None:
        """A request is out. ``result`` is what ``_free_request`` returned: D's or P's handle, or nothing."""
        opened = self._open.pop(request.request_id, None)
        if opened is None:
            return
        read = self._read or self._choose(request)
        values = read(request)
        given = result[0] if type(result) is tuple else result
        payload = (opened, values, given)
        self._push_request(self, self._request, payload)
        if given is not None and values[0] in scheduler.requests:
            self._push_hold(self, self._hold, payload)
        if opened[1] is Leg.PREFILL and values[1].get("remote_block_ids"):
            self._push_use(self, self._hold_use, payload)

    def _choose(self, request: Any) -> Any:
        self._names = tuple(name for name in _FIELDS if hasattr(request, name))
        self._read = attrgetter(*self._names)
        return self._read

    # --- background thread ------------------------------------------------------------------------------
    def open_requests(self) -> list[str]:
        return list(self._open)

    def forget(self) -> None:
        self._open.clear()

    def _request(self, payload: tuple[Any, ...]) -> Request:
        (added_ns, leg, stats, events), values, given = payload
        seen = dict(zip(self._names, values, strict=True))
        reason = _finish_reason(seen["status"])
        scheduled = next((event for event in events if event.type == _SCHEDULED), None)
        known = stats is not None and getattr(stats, "num_prompt_tokens", 0) != 0
        return Request(
            request_id=seen["request_id"],
            leg=leg,
            session_id=text(seen.get("session_id")),
            traceparent=text((seen.get("trace_headers") or {}).get("traceparent")),
            input_tokens=count(seen["num_prompt_tokens"]) or 0,
            output_tokens=count(seen["num_output_tokens"]) or 0,
            computed_tokens=count(stats.num_computed_tokens) if known else None,
            local_hit_tokens=count(stats.num_local_cached_tokens) if known else None,
            external_tokens=count(stats.num_external_cached_tokens) if known else None,
            # Engines before 0.28 take the statistics after this point, but always for an answer that ends by itself.
            stats_sent=known and (seen.get("prefill_stats") is None or reason in _NORMAL_ENDS),
            finish_reason=reason,
            preemptions=count(seen.get("num_preemptions")) or 0,
            skip_cache=bool(seen.get("skip_reading_prefix_cache")),
            arrival_wall_ns=seconds_to_ns(seen.get("arrival_time")),
            added_mono_ns=added_ns,
            scheduled_mono_ns=None if scheduled is None else seconds_to_ns(scheduled.timestamp),
            handle_in=handle(seen["kv_transfer_params"]),
            handle_out=handle(given),
        )

    def _hold(self, payload: tuple[Any, ...]) -> Hold:
        _, values, given = payload
        kind = HoldKind.HOLD if given.get("do_remote_decode") else HoldKind.LEASE
        blocks = block_counts(given.get("remote_block_ids"))
        return Hold(
            request_id=values[0],
            kind=kind,
            phase="held",
            tokens=count(given.get("remote_num_tokens")),
            blocks=None if blocks is None else sum(blocks),
            bytes=self._hold_bytes(blocks),
            ttl_ns=self.engine.hold_ttl_ns if kind is HoldKind.HOLD else self.engine.lease_ns,
        )

    def _hold_bytes(self, blocks: list[int] | None) -> int | None:
        if blocks is None or len(blocks) != len(self._group_bytes):
            return None
        return self._ranks * sum(n * size for n, size in zip(blocks, self._group_bytes, strict=True))

    def _hold_use(self, payload: tuple[Any, ...]) -> HoldUse:
        (_, _, stats, _), values, _ = payload
        params = values[1]
        taken = handle(params)
        if taken is None:
            raise ValueError("a handle with blocks and without an identity")
        known = stats is not None and getattr(stats, "num_prompt_tokens", 0) != 0
        return HoldUse(
            request_id=values[0],
            handle=taken,
            input_tokens=count(values[self._names.index("num_prompt_tokens")]) or 0,
            local_hit_tokens=count(stats.num_local_cached_tokens) if known else None,
            external_tokens=count(stats.num_external_cached_tokens) if known else None,
            processed=bool(params.get("_remote_blocks_processed")) and all(name in params for name in _NAMED),
        )


def _finish_reason(status: Any) -> str:
    """vLLM's FinishReason as text; its status in lower case where there is none."""
    reason = type(status).get_finished_reason(status)
    return str(getattr(status, "name", status)).lower() if reason is None else str(reason)
