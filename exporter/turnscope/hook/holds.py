"""The ends of one NIXL worker's holds and leases on this rank: read, expired, or read too late.

A hold that is reported as sent without the full number of its readers' notices has expired. Never inferred from
the deadline: engines reap late, and some not at all while idle.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from turnscope.emit.guard import Guard
from turnscope.semconv import HoldKind

LIMIT: Final = 4096
"""Holds remembered while their readers come."""

Push = Callable[[tuple[Any, ...]], None]


def watch_notices(worker: Any, guard: Guard, push: Push, notices: dict[str, list[Any]]) -> None:
    """Wrap ``get_new_notifs``: count each hold's notices in ``notices`` as [seen, what they say]; push late ones."""
    hear = worker.nixl_wrapper.get_new_notifs

    @wraps(hear)
    def get_new_notifs(*args: Any, **kwargs: Any) -> Any:
        came = hear(*args, **kwargs) if args or kwargs else hear()
        if came and guard.on:
            try:
                for messages in came.values():
                    for message in messages:
                        if message[:3] != b"HB:":
                            count(message)
            except Exception as error:
                guard.failed(error)
        return came

    def count(message: bytes) -> None:
        name, _, number = message.decode().rpartition(":")
        if name in worker._reqs_to_send or name in worker._reqs_to_process:
            seen = notices.get(name)
            if seen is None:
                if len(notices) >= LIMIT:
                    del notices[next(iter(notices))]
                notices[name] = [1, number]
                return
            if seen[0] < readers_expected(worker, number):
                seen[0] += 1
                return
            # One too many in the same batch: vLLM has not yet taken the hold off its lists.
        push((name, "late_notice", None))

    worker.nixl_wrapper.get_new_notifs = get_new_notifs


def readers_expected(worker: Any, said: str) -> int:
    """How many notices end a hold. Engines that do not name the number of readers send the reader's TP size instead."""
    ranks = 1 if hasattr(worker, "expected_consumer_notifications_by_req") else int(worker.world_size)
    return max(1, int(said) // max(1, ranks))


def watch_kinds(worker: Any, guard: Guard, hold_ns: int, lease_ns: int, kinds: dict[str, HoldKind]) -> None:
    """Wrap ``start_load_kv`` where P and D are one engine: there only its length tells a new hold from a lease."""
    start = worker.start_load_kv

    @wraps(start)
    def start_load_kv(metadata: Any, *args: Any, **kwargs: Any) -> Any:
        if guard.on:
            try:
                for name, deadline in metadata.reqs_to_send.items():
                    if len(kinds) >= LIMIT:
                        del kinds[next(iter(kinds))]
                    left_ns = (deadline - metadata.scheduler_clock) * 1e9
                    longer = abs(left_ns - hold_ns) < abs(left_ns - lease_ns)
                    kinds[name] = HoldKind.HOLD if longer else HoldKind.LEASE
            except Exception as error:
                guard.failed(error)
        return start(metadata, *args, **kwargs)

    worker.start_load_kv = start_load_kv


def watch_completions(worker: Any, guard: Guard, done: Callable[[Any, Any], None]) -> None:
    """Wrap the call that reports completions; ``done(sent, received)`` when there are any.

    ``get_finished`` of newer engines calls ``get_transfer_results``: one of the two is wrapped.
    """
    name = "get_transfer_results" if hasattr(worker, "get_transfer_results") else "get_finished"
    complete = getattr(worker, name)

    @wraps(complete)
    def completing(*args: Any, **kwargs: Any) -> Any:
        results = complete(*args, **kwargs) if args or kwargs else complete()
        if guard.on:
            try:
                if type(results) is tuple:
                    sent, received = results
                else:
                    sent, received = results.finished_sending, results.finished_recving
                if sent or received:
                    done(sent, received)
            except Exception as error:
                guard.failed(error)
        return results

    setattr(worker, name, completing)
