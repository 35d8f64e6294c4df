"""Transfers of one NIXL worker: which request each serves, and how it ends.

The wrappers run on the engine's threads. While a request's blocks are being read the functions share what is known of
it; a transfer is remembered by its number alone, because losing the handle's object would abort it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import monotonic_ns
from typing import Any, Final

from turnscope.emit.guard import Guard
from turnscope.semconv import TransferState

LIMIT: Final = 4096
"""Requests remembered while they connect."""
EXPIRED: Final = "num_kv_expired_reqs"

Push = Callable[[tuple[Any, ...]], None]
NOBODY: Final = (None, None, None, False)
"""(request id, remote engine id, remote request id, whether the handle carried an expiry time) of no known request."""


def watch_reads(
    worker: Any, guard: Guard, push: Push, connecting: dict[str, tuple[Any, ...]], *, two_way: bool
) -> None:
    """Wrap the worker's reading (in push mode: writing) method and NIXL's calls, on the instances.

    ``push((serves, state, started_ns, telemetry))`` at the end of each. ``connecting`` gets the requests whose read
    waits for a handshake. ``two_way``: reads go both ways here, and only the handle tells which.
    """
    nixl = worker.nixl_wrapper
    transfers: dict[Any, tuple[Any, int]] = {}
    serves: tuple[Any, ...] = NOBODY
    made = noticed = 0
    method = "_xfer_blocks_for_req" if hasattr(worker, "_sending_transfers") else "_read_blocks_for_req"
    read, make, measure, release, notify = (
        getattr(worker, method), nixl.make_prepped_xfer, nixl.get_xfer_telemetry, nixl.release_xfer_handle,
        nixl.send_notif,
    )  # fmt: skip
    counts_expired = EXPIRED in worker.xfer_stats.data

    @wraps(read)
    def read_blocks(req_id: str, meta: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal serves, made, noticed
        if not guard.on:
            return read(req_id, meta, *args, **kwargs)
        try:
            made = noticed = 0
            remote = meta.remote
            engine_id = remote.engine_id
            returning = two_way and getattr(remote, "blocks_expiry_time", None) is not None
            serves = (req_id, engine_id, remote.request_id, returning)
            known = engine_id in worker._remote_agents
            # vLLM's own list grows by one when it declines. Only looked at: it is copied and pickled.
            expired = len(worker.xfer_stats.data[EXPIRED]) if counts_expired else 0
        except Exception as error:
            guard.failed(error)
            serves, known, expired = NOBODY, True, -1
        try:
            return read(req_id, meta, *args, **kwargs) if args or kwargs else read(req_id, meta)
        finally:
            try:
                if made == 0 and serves is not NOBODY:
                    ended(known, counts_expired and len(worker.xfer_stats.data[EXPIRED]) > expired)
                elif connecting:
                    connecting.pop(req_id, None)
            except Exception as error:
                guard.failed(error)
            serves = NOBODY

    def ended(known: bool, declined: bool) -> None:
        """A read has come back without a transfer."""
        connecting.pop(serves[0], None)
        if declined:
            push((serves, TransferState.DECLINED, None, None))
        elif noticed:
            push((serves, TransferState.NOTICE_ONLY, None, None))
        elif serves[1] in getattr(worker, "_invalid_remote_engines", ()):
            push((serves, TransferState.FAILED, None, None))
        elif not known:
            if len(connecting) >= LIMIT:
                del connecting[next(iter(connecting))]
            connecting[serves[0]] = serves

    @wraps(make)
    def make_prepped_xfer(*args: Any, **kwargs: Any) -> Any:
        nonlocal made
        try:
            handle = make(*args, **kwargs)
        except Exception:
            made += 1
            if guard.on:
                push((serves, TransferState.FAILED, None, None))
            raise
        made += 1
        if guard.on:
            try:
                transfers[getattr(handle, "_handle", handle)] = (serves, monotonic_ns())
            except Exception as error:
                guard.failed(error)
        return handle

    @wraps(measure)
    def get_xfer_telemetry(handle: Any, *args: Any, **kwargs: Any) -> Any:
        telemetry = measure(handle, *args, **kwargs) if args or kwargs else measure(handle)
        if guard.on:
            try:
                begun = transfers.pop(getattr(handle, "_handle", handle), None)
                if begun is not None:  # vLLM asks once, when a transfer is complete
                    push((begun[0], TransferState.DONE, begun[1], telemetry))
            except Exception as error:
                guard.failed(error)
        return telemetry

    @wraps(release)
    def release_xfer_handle(handle: Any, *args: Any, **kwargs: Any) -> Any:
        number = getattr(handle, "_handle", handle)
        result = release(handle, *args, **kwargs) if args or kwargs else release(handle)
        try:
            begun = transfers.pop(number, None)
            if begun is not None and guard.on:
                push((begun[0], TransferState.FAILED, begun[1], None))
        except Exception as error:
            guard.failed(error)
        return result

    @wraps(notify)
    def send_notif(*args: Any, **kwargs: Any) -> Any:
        nonlocal noticed
        result = notify(*args, **kwargs)
        noticed += 1  # heartbeats as well; what counts are those sent during a read
        return result

    setattr(worker, method, read_blocks)
    nixl.make_prepped_xfer = make_prepped_xfer
    nixl.get_xfer_telemetry = get_xfer_telemetry
    nixl.release_xfer_handle = release_xfer_handle
    nixl.send_notif = send_notif
