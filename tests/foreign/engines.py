"""Stub engines with the engine's real hook in them: what arrives over HTTP runs through a watched scheduler."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.hook import fakes
from tests.proxy.stubs import serving
from turnscope.emit.guard import Guard
from turnscope.emit.ring import Rings
from turnscope.hook.engine_facts import engine_facts, group_bytes
from turnscope.hook.scheduler import SchedulerWatch
from turnscope.hook.worker import WorkerWatch
from turnscope.model import Emitter, EngineState, Event

OUTPUT = 20
"""Tokens of every answer."""


class HookedEngine:
    """``p`` or ``d``. A token is a character of a message."""

    def __init__(self, name: str, *, bidirectional: bool = True) -> None:
        role = "kv_producer" if name.startswith("p") else "kv_consumer"
        config = fakes.vllm_config(role, engine_id=name, bidirectional_kv_xfer=bidirectional)
        cache = fakes.kv_cache_config()
        self.name = name
        self.url = ""
        self.headers: list[dict[str, str]] = []
        self._prefills = role == "kv_producer"
        self._numbers = itertools.count(0xAAAA0001)
        self._rings = Rings()
        self._guard = Guard("hook")
        connector = fakes.NixlConnector(None, fakes.SCHEDULER, None)
        self._scheduler = fakes.Scheduler(config, cache, connector)
        self._worker = fakes.ConnectorWorker()
        facts = {"generation": f"{name}-1", "name": None}
        watch = SchedulerWatch(
            rings=self._rings,
            guard=self._guard,
            emitter=Emitter(id=name.encode().hex().zfill(16), kind="engine", host=name),
            engine=engine_facts(config, cache, connector, **facts),
            group_bytes=group_bytes(cache),
            ranks=1,
        )
        reader = WorkerWatch(
            rings=self._rings,
            guard=self._guard,
            emitter=Emitter(id=name.encode().hex().zfill(16), kind="worker", host=name),
            engine=engine_facts(config, cache, fakes.NixlConnector(None, fakes.WORKER, None), rank=0, **facts),
        )
        watch.attach(self._scheduler)
        reader.attach(self._worker)
        for each in (watch, reader):
            self._rings["engine"].pusher(each.state)(EngineState(state="started", wrapped=each.wrapped))

    def events(self) -> list[Event]:
        """What its hook has said since the last call."""
        assert self._guard.errors == 0
        offset = time.time_ns() - time.monotonic_ns()
        found = []
        for entry in self._rings.take(1 << 20):
            watch: Any = entry.build.__self__  # type: ignore[attr-defined]
            body: Any = entry.build(entry.payload)
            found.append(
                Event(
                    emitter=watch.emitter,
                    engine=watch.engine,
                    seq=entry.seq,
                    wall_ns=entry.mono_ns + offset,
                    mono_ns=entry.mono_ns,
                    body=body,
                )
            )
        return found

    async def chat(self, request: Request) -> Response:
        """As vLLM does: ids of its own, the session from header or body, handles in answers that are not streamed."""
        body = await request.json()
        self.headers.append(dict(request.headers))
        params = dict(body.get("kv_transfer_params") or {})
        prompt = sum(len(message["content"]) for message in body["messages"])
        name = f"chatcmpl-{request.headers.get('x-request-id', 'none')}-{next(self._numbers):x}"
        session = body.get("session_id") or request.headers.get("x-session-id")
        served = fakes.Request(name, prompt=prompt, params=params, session_id=session)
        left = self._serve(served, 1 if self._prefills else OUTPUT)
        choice = {"index": 0, "message": {"role": "assistant", "content": "x" * OUTPUT}, "finish_reason": "stop"}
        if body.get("stream"):
            return StreamingResponse(
                iter([b'data: {"choices": []}\n\n', b"data: [DONE]\n\n"]), media_type="text/event-stream"
            )
        return JSONResponse({"id": name, "choices": [choice], "kv_transfer_params": left})

    def _serve(self, request: fakes.Request, output: int) -> dict[str, Any]:
        params, prompt = request.kv_transfer_params or {}, request.num_prompt_tokens
        external = 0
        if params.get("remote_block_ids"):
            external = prompt - 1 if params.get("do_remote_prefill") else min(params["remote_num_tokens"], prompt - 1)
            self._read(request.request_id, params)
        self._scheduler.add_request(request)
        self._scheduler.schedule(request, external=external)
        self._scheduler.output(request, output)
        left = fakes.handle(
            self.name,
            request.request_id,
            remote_block_ids=[[1] * (-(-(prompt + output - 1) // 128))],
            remote_num_tokens=prompt + output - 1,
            do_remote_prefill=self._prefills,
            do_remote_decode=not self._prefills,
        )
        self._scheduler.answer = True, left
        ended = fakes.RequestStatus.FINISHED_LENGTH_CAPPED if self._prefills else fakes.RequestStatus.FINISHED_STOPPED
        self._scheduler.finish(request, ended)
        return left

    def _read(self, request_id: str, params: dict[str, Any]) -> None:
        holder, held = params["remote_engine_id"], params["remote_request_id"]
        self._worker._remote_agents[holder] = {(0, 0): "agent"}
        self._worker._read_blocks_for_req(request_id, fakes.remote(holder, held, params["remote_blocks_expiry_time"]))
        transfer = self._worker.nixl_wrapper.made[-1]
        self._worker.nixl_wrapper.get_xfer_telemetry(transfer)
        self._worker.nixl_wrapper.release_xfer_handle(transfer)


async def _fine(_: Request) -> Response:
    """Routers ask for health, models and metrics before they send anything."""
    return JSONResponse({"object": "list", "data": [{"id": "m", "object": "model"}]})


@contextlib.contextmanager
def pair() -> Iterator[tuple[HookedEngine, HookedEngine]]:
    """P and D, serving."""
    engines = HookedEngine("p"), HookedEngine("d")
    with contextlib.ExitStack() as stack:
        for engine in engines:
            routes = [Route("/v1/chat/completions", engine.chat, methods=["POST"]), Route("/{rest:path}", _fine)]
            engine.url = stack.enter_context(serving(Starlette(routes=routes)))
        yield engines
