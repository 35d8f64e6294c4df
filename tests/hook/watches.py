"""Watches on fakes, without a plugin or a thread; ``events`` builds what they pushed."""

from __future__ import annotations

from typing import Any

from tests.hook import fakes
from turnscope.emit.guard import Guard
from turnscope.emit.ring import Rings
from turnscope.hook.digests import Digests
from turnscope.hook.engine_facts import engine_facts, group_bytes
from turnscope.hook.scheduler import SchedulerWatch
from turnscope.hook.worker import WorkerWatch
from turnscope.model import Body
from turnscope.model import Emitter as Source


class WatchedScheduler:
    """A fake scheduler with a watch on it."""

    def __init__(
        self,
        role: str | None = "kv_producer",
        *,
        groups: int = 1,
        scheduler: Any = None,
        connector: Any = None,
        digests: Digests | None = None,
    ) -> None:
        config, cache = fakes.vllm_config(role), fakes.kv_cache_config(groups)
        if connector is None and role is not None:
            connector = fakes.NixlConnector(None, fakes.SCHEDULER, None)
        self.rings = Rings()
        self.guard = Guard("scheduler hook", limit=3)
        self.scheduler = scheduler or fakes.Scheduler(config, cache, connector)
        self.watch = SchedulerWatch(
            rings=self.rings,
            guard=self.guard,
            emitter=Source(id="ab" * 8, kind="engine"),
            engine=engine_facts(config, cache, connector, generation="01", name=None),
            group_bytes=group_bytes(cache),
            ranks=2,
            digests=digests,
        )
        self.watch.attach(self.scheduler)

    def serve(
        self,
        request: fakes.Request,
        *,
        local: Any = 0,
        external: Any = 0,
        status: fakes.RequestStatus = fakes.RequestStatus.FINISHED_LENGTH_CAPPED,
        answer: tuple[bool, Any] = (False, None),
    ) -> list[Body]:
        """Add, schedule, answer one token and finish; the events of it."""
        self.scheduler.add_request(request)
        self.scheduler.schedule(request, local=local, external=external)
        self.scheduler.output(request)
        self.scheduler.answer = answer
        self.scheduler.finish(request, status)
        return self.events()

    def events(self) -> list[Body]:
        return [entry.build(entry.payload) for entry in self.rings.take(1 << 20)]


class WatchedWorker:
    """A fake connector worker, connected to engines ``p0`` and ``d0``, with a watch on it."""

    def __init__(self, role: str = "kv_producer", *, worker: Any = None, **extra: Any) -> None:
        self.rings = Rings()
        self.guard = Guard("NIXL hook", limit=3)
        self.worker = worker or fakes.ConnectorWorker()
        for engine in ("p0", "d0"):
            self.worker._remote_agents[engine] = {(0, 0): "agent"}
        connector = fakes.NixlConnector(None, fakes.WORKER, None)
        self.watch = WorkerWatch(
            rings=self.rings,
            guard=self.guard,
            emitter=Source(id="ab" * 8, kind="worker"),
            engine=engine_facts(fakes.vllm_config(role, **extra), None, connector, generation="01", name=None, rank=0),
        )
        self.watch.attach(self.worker)

    @property
    def nixl(self) -> Any:
        return self.worker.nixl_wrapper

    def read(self, request_id: str = "r1", *, engine: str = "d0", remote: str = "d-r0", expiry: Any = None) -> None:
        self.worker._read_blocks_for_req(request_id, fakes.remote(engine, remote, expiry))

    def complete(self, handle: Any) -> None:
        """vLLM finds the transfer done."""
        self.nixl.get_xfer_telemetry(handle)
        self.nixl.release_xfer_handle(handle)

    def notice(self, *messages: str) -> None:
        self.nixl.notices = {"agent": [message.encode() for message in messages]}
        self.nixl.get_new_notifs()

    def report(self, *, sent: set[str] | None = None, received: set[str] | None = None) -> None:
        """One completion call with these results."""
        self.worker.sent, self.worker.received = sent or set(), received or set()
        self.worker.get_transfer_results()

    def events(self) -> list[Any]:
        return [entry.build(entry.payload) for entry in self.rings.take(1 << 20)]
