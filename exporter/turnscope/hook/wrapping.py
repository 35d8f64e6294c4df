"""The wrappers themselves. Each calls the original, and passes on what that returns or raises.

A body runs only while its guard is on, and what it raises goes to the guard.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from turnscope.hook.worker import WorkerWatch

_MARK = "__turnscope__"
_ATTRIBUTE = "_turnscope_watch"


def wrap_scheduler(scheduler: type[Any], begun: Callable[[Any], Any]) -> None:
    """Wrap the class once. ``begun(instance)`` gives the instance's SchedulerWatch, or None; it never raises."""
    if getattr(scheduler.__init__, _MARK, False):
        return
    init, add_request, free_request = scheduler.__init__, scheduler.add_request, scheduler._free_request

    @wraps(init)
    def new_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        watch = begun(self)
        if watch is not None:
            setattr(self, _ATTRIBUTE, watch)

    @wraps(add_request)
    def new_add_request(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        result = add_request(self, request, *args, **kwargs)
        watch = getattr(self, _ATTRIBUTE, None)
        if watch is not None and watch.guard.on:
            try:
                watch.added(self, request)
            except Exception as error:
                watch.guard.failed(error)
        return result

    @wraps(free_request)
    def new_free_request(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        result = free_request(self, request, *args, **kwargs)
        watch = getattr(self, _ATTRIBUTE, None)
        if watch is not None and watch.guard.on:
            try:
                watch.freed(self, request, result)
            except Exception as error:
                watch.guard.failed(error)
        return result

    setattr(new_init, _MARK, True)
    scheduler.__init__ = new_init
    scheduler.add_request = new_add_request
    scheduler._free_request = new_free_request


def wrap_factory(factory: type[Any], created: Callable[[Any, Any, Any, Any], None]) -> None:
    """Wrap the class once. ``created(connector, config, role, kv_cache_config)`` never raises."""
    original = factory.create_connector.__func__
    if getattr(original, _MARK, False):
        return

    @wraps(original)
    def create_connector(cls: type[Any], config: Any, role: Any, *args: Any, **kwargs: Any) -> Any:
        connector = original(cls, config, role, *args, **kwargs)
        created(connector, config, role, args[0] if args else kwargs.get("kv_cache_config"))
        return connector

    setattr(create_connector, _MARK, True)
    factory.create_connector = classmethod(create_connector)


def wrap_worker(worker: Any, watch: WorkerWatch) -> None:
    """Put wrappers on the instance and on its ``nixl_wrapper``, once; what this engine has not is left out."""
    if hasattr(worker, _ATTRIBUTE):
        return
    setattr(worker, _ATTRIBUTE, watch)
    nixl = worker.nixl_wrapper
    _replace(nixl, "make_prepped_xfer", _making(nixl.make_prepped_xfer, watch))
    for name, body in (
        ("get_xfer_telemetry", watch.transfer_done),
        ("release_xfer_handle", lambda handle, _result: watch.transfer_released(handle)),
    ):
        _replace(nixl, name, _after_handle(getattr(nixl, name), watch, body))
    _replace(nixl, "send_notif", _sending(nixl.send_notif, watch))
    if hasattr(worker, "_sending_transfers"):
        _replace(worker, "_xfer_blocks_for_req", _reading(worker._xfer_blocks_for_req, watch))
    else:
        _replace(nixl, "get_new_notifs", _hearing(nixl.get_new_notifs, watch))
        _replace(worker, "_read_blocks_for_req", _reading(worker._read_blocks_for_req, watch))
    # The newer call is what the older one calls there: wrap one of them.
    name = "get_transfer_results" if hasattr(worker, "get_transfer_results") else "get_finished"
    _replace(worker, name, _completing(getattr(worker, name), watch))
    if watch.engine.role == "both" and watch.engine.bidirectional:
        _replace(worker, "start_load_kv", _beginning(worker.start_load_kv, watch))
    watch.wrapped = ["connector_worker", "nixl_wrapper"]


def _replace(owner: Any, name: str, wrapper: Any) -> None:
    setattr(owner, name, wrapper)


def _making(original: Any, watch: WorkerWatch) -> Any:
    guard = watch.guard

    @wraps(original)
    def make_prepped_xfer(*args: Any, **kwargs: Any) -> Any:
        try:
            handle = original(*args, **kwargs)
        except Exception:
            if guard.on:
                try:
                    watch.transfer_refused()
                except Exception as error:
                    guard.failed(error)
            raise
        if guard.on:
            try:
                watch.transfer_made(handle)
            except Exception as error:
                guard.failed(error)
        return handle

    return make_prepped_xfer


def _after_handle(original: Any, watch: WorkerWatch, body: Callable[[Any, Any], None]) -> Any:
    guard = watch.guard

    @wraps(original)
    def with_handle(handle: Any, *args: Any, **kwargs: Any) -> Any:
        number = getattr(handle, "_handle", handle)
        result = original(handle, *args, **kwargs)
        if guard.on:
            try:
                body(number, result)
            except Exception as error:
                guard.failed(error)
        return result

    return with_handle


def _sending(original: Any, watch: WorkerWatch) -> Any:
    guard = watch.guard

    @wraps(original)
    def send_notif(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if guard.on:
            watch.notice_sent()
        return result

    return send_notif


def _hearing(original: Any, watch: WorkerWatch) -> Any:
    guard = watch.guard

    @wraps(original)
    def get_new_notifs(*args: Any, **kwargs: Any) -> Any:
        notices = original(*args, **kwargs)
        if notices and guard.on:
            try:
                watch.notices_came(notices)
            except Exception as error:
                guard.failed(error)
        return notices

    return get_new_notifs


def _reading(original: Any, watch: WorkerWatch) -> Any:
    guard = watch.guard

    @wraps(original)
    def read_blocks_for_req(req_id: str, meta: Any, *args: Any, **kwargs: Any) -> Any:
        if not guard.on:
            return original(req_id, meta, *args, **kwargs)
        try:
            watch.read_started(req_id, meta)
        except Exception as error:
            guard.failed(error)
        try:
            return original(req_id, meta, *args, **kwargs)
        finally:
            try:
                watch.read_ended()
            except Exception as error:
                guard.failed(error)

    return read_blocks_for_req


def _completing(original: Any, watch: WorkerWatch) -> Any:
    guard = watch.guard

    @wraps(original)
    def get_transfer_results(*args: Any, **kwargs: Any) -> Any:
        results = original(*args, **kwargs)
        if guard.on:
            try:
                watch.results(results)
            except Exception as error:
                guard.failed(error)
        return results

    return get_transfer_results


def _beginning(original: Any, watch: WorkerWatch) -> Any:
    guard = watch.guard

    @wraps(original)
    def start_load_kv(metadata: Any, *args: Any, **kwargs: Any) -> Any:
        if guard.on:
            try:
                watch.holds_began(metadata)
            except Exception as error:
                guard.failed(error)
        return original(metadata, *args, **kwargs)

    return start_load_kv
