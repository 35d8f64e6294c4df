"""Objects shaped like vLLM 0.32's, as far as the hook looks at them."""

# The signatures are vLLM's.
# ruff: noqa: ARG002

from __future__ import annotations

import enum
import time
from collections import defaultdict
from types import SimpleNamespace
from typing import Any


class FinishReason(enum.IntEnum):
    STOP = 0
    LENGTH = 1
    ABORT = 2
    ERROR = 3
    REPETITION = 4

    def __str__(self) -> str:
        return self.name.lower()


class RequestStatus(enum.IntEnum):
    WAITING = 1
    RUNNING = 5
    PREEMPTED = 6
    FINISHED_STOPPED = 7
    FINISHED_LENGTH_CAPPED = 8
    FINISHED_ABORTED = 9
    FINISHED_IGNORED = 10
    FINISHED_ERROR = 11

    @staticmethod
    def get_finished_reason(status: RequestStatus) -> FinishReason | None:
        return {
            RequestStatus.FINISHED_STOPPED: FinishReason.STOP,
            RequestStatus.FINISHED_LENGTH_CAPPED: FinishReason.LENGTH,
            RequestStatus.FINISHED_ABORTED: FinishReason.ABORT,
            RequestStatus.FINISHED_IGNORED: FinishReason.LENGTH,
            RequestStatus.FINISHED_ERROR: FinishReason.ERROR,
        }.get(status)


class PrefillStats:
    def __init__(self, prompt: Any = 0, local: Any = 0, external: Any = 0) -> None:
        self.num_prompt_tokens = prompt
        self.num_local_cached_tokens = local
        self.num_external_cached_tokens = external
        self.num_computed_tokens = 0
        if isinstance(prompt, int):
            self.num_computed_tokens = prompt - (local or 0) - (external or 0)


class ConstantList:
    """A view that follows its list."""

    def __init__(self, x: list[int]) -> None:
        self._x = x

    def __getitem__(self, item: Any) -> Any:
        return self._x[item]

    def __len__(self) -> int:
        return len(self._x)


class Request:
    def __init__(
        self,
        request_id: str = "chatcmpl-1-abcd",
        *,
        prompt: int = 1250,
        params: dict[str, Any] | None = None,
        session_id: str | None = "s1",
        abort_immediately: bool = False,
    ) -> None:
        self.request_id = request_id
        self.status = RequestStatus.WAITING
        self.events: list[Any] = []
        self.kv_transfer_params = params
        self.prompt_token_ids = list(range(prompt))
        self.prompt_embeds: Any = None
        self.num_prompt_tokens = prompt
        self._output_token_ids: list[int] = []
        self._all_token_ids = list(range(prompt))
        self.all_token_ids = ConstantList(self._all_token_ids)
        self.num_computed_tokens = 0
        self.lora_request: Any = None
        self.cache_salt: str | None = None
        self.mm_features: list[Any] = []
        self.arrival_time = time.time()
        self.trace_headers = {"traceparent": "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"}
        self.session_id = session_id
        self.num_preemptions = 0
        self.num_computed_tokens = 0
        self.prefill_stats: PrefillStats | None = PrefillStats()
        self.skip_reading_prefix_cache = False
        self.abort_immediately = abort_immediately

    @property
    def num_output_tokens(self) -> int:
        return len(self._output_token_ids)

    def take_prefill_stats(self) -> PrefillStats | None:
        stats, self.prefill_stats = self.prefill_stats, None
        return stats


class KVCacheManager:
    """Empties its prefix cache, unless blocks of it are in use."""

    def __init__(self) -> None:
        self.used = 0

    def reset_prefix_cache(self) -> bool:
        return not self.used


class Scheduler:
    """Adds and frees as vLLM does; ``answer`` is what the connector's ``request_finished`` returns."""

    def __init__(self, vllm_config: Any, kv_cache_config: Any, connector: Any = None) -> None:
        self.vllm_config = vllm_config
        self.kv_cache_config = kv_cache_config
        self.connector = connector
        self.kv_cache_manager: Any = KVCacheManager()
        self.requests: dict[str, Request] = {}
        self.answer: tuple[bool, dict[str, Any] | None] = (False, None)

    def add_request(self, request: Request) -> None:
        if request.request_id in self.requests:
            return
        self.requests[request.request_id] = request
        request.events.append(SimpleNamespace(type=1, timestamp=time.monotonic()))

    def schedule(self, request: Request, *, local: Any = 0, external: Any = 0) -> None:
        request.events.append(SimpleNamespace(type=2, timestamp=time.monotonic()))
        assert request.prefill_stats is not None
        request.prefill_stats.__init__(request.num_prompt_tokens, local, external)  # type: ignore[misc]
        request.num_computed_tokens = request.num_prompt_tokens
        if request.kv_transfer_params:
            request.kv_transfer_params["do_remote_prefill"] = False
            request.kv_transfer_params["_remote_blocks_processed"] = True

    def output(self, request: Request, tokens: int = 1) -> None:
        request._output_token_ids += [1] * tokens
        request._all_token_ids += [1] * tokens
        request.num_computed_tokens = request.num_prompt_tokens + request.num_output_tokens - 1
        request.take_prefill_stats()
        request.events = []

    def finish(self, request: Request, status: RequestStatus) -> Any:
        request.status = status
        return self._free_request(request)

    def _free_request(self, request: Request, delay_free_blocks: bool = False) -> Any:
        delay, params = self.answer
        if not (delay or delay_free_blocks):
            del self.requests[request.request_id]
        return params, None


def handle(engine_id: str, request_id: str, **changes: Any) -> dict[str, Any]:
    """A ``kv_transfer_params`` as an engine returns it."""
    return {
        "do_remote_prefill": False,
        "do_remote_decode": True,
        "remote_block_ids": ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10],),
        "remote_engine_id": engine_id,
        "remote_request_id": request_id,
        "remote_host": "127.0.0.1",
        "remote_port": 5600,
        "tp_size": 1,
        "remote_num_tokens": 1199,
        "remote_blocks_expiry_time": 1234.5,
        "transfer_mode": "pull",
        **changes,
    }


class XferHandle:
    """NIXL 1.5's: the number is an attribute, and losing the object aborts the transfer."""

    def __init__(self, number: int) -> None:
        self._handle = number


class NixlWrapper:
    def __init__(self) -> None:
        self.made: list[XferHandle] = []
        self.sent: list[tuple[str, bytes]] = []
        self.notices: dict[str, list[bytes]] = {}
        self.refuse = False

    def make_prepped_xfer(self, *args: Any, notif_msg: bytes = b"") -> XferHandle:
        if self.refuse:
            raise RuntimeError("no descriptors")
        self.made.append(XferHandle(len(self.made) + 1))
        return self.made[-1]

    def get_xfer_telemetry(self, handle: XferHandle) -> Any:
        return SimpleNamespace(totalBytes=786_432, xferDuration=1500, postDuration=20, descCount=12)

    def release_xfer_handle(self, handle: XferHandle) -> None:
        return None

    def send_notif(self, agent: str, notif_msg: bytes) -> None:
        self.sent.append((agent, notif_msg))

    def get_new_notifs(self) -> dict[str, list[bytes]]:
        notices, self.notices = self.notices, {}
        return notices


def remote(engine_id: str, request_id: str, expiry: float | None = None) -> Any:
    """A ``ReqMeta`` with its remote half."""
    return SimpleNamespace(
        remote=SimpleNamespace(engine_id=engine_id, request_id=request_id, blocks_expiry_time=expiry)
    )


class ConnectorWorker:
    """The reader and holder of one rank; tests tell it how reads go."""

    def __init__(self, nixl: NixlWrapper | None = None) -> None:
        self.nixl_wrapper = nixl or NixlWrapper()
        self.xfer_stats = SimpleNamespace(data={"num_kv_expired_reqs": []})
        self.expected_consumer_notifications_by_req: dict[str, int] = {}
        self._lease_extension = 20
        self._bidirectional_kv_xfer_enabled = True
        self._remote_agents: dict[str, Any] = defaultdict(dict)
        self._invalid_remote_engines: dict[str, float] = {}
        self._reqs_to_send: dict[str, float] = {}
        self._reqs_to_process: set[str] = set()
        self.tp_rank = 0
        self.world_size = 1
        self.decline = False
        self.reads = 1
        self.sent: set[str] = set()
        self.received: set[str] = set()

    def _read_blocks_for_req(self, req_id: str, meta: Any) -> None:
        if meta.remote.engine_id in self._invalid_remote_engines or meta.remote.engine_id not in self._remote_agents:
            return
        if self.decline:
            self.xfer_stats.data["num_kv_expired_reqs"].append(1)
            return
        note = f"{meta.remote.request_id}:1".encode()
        for _ in range(self.reads):
            self.nixl_wrapper.make_prepped_xfer("READ", notif_msg=note)
        if not self.reads:
            self.nixl_wrapper.send_notif("agent", notif_msg=note)

    def start_load_kv(self, metadata: Any) -> str:
        return "started"

    def get_transfer_results(self) -> Any:
        self.nixl_wrapper.get_new_notifs()
        sent, self.sent, received, self.received = self.sent, set(), self.received, set()
        return SimpleNamespace(finished_sending=sent, finished_recving=received, failed_recving=set())


class ConnectorScheduler:
    """The scheduler's half of a connector, with vLLM 0.32's own conditions for what it promises and what it queues."""

    _kv_lease_duration = 30
    kv_recompute_threshold = 64
    decoder_kv_blocks_ttl = 60

    def __init__(self, *, bidirectional: bool = True, host_buffer: bool = False) -> None:
        self.is_bidirectional_kv_xfer_enabled = bidirectional
        self.use_host_buffer = host_buffer
        self._reqs_need_recv: dict[str, Any] = {}
        self._reqs_need_save: dict[str, Any] = {}

    def promised(self, request: Request, local: int = 0) -> int:
        """``get_num_new_matched_tokens``."""
        params = request.kv_transfer_params or {}
        if params.get("do_remote_prefill"):
            return request.num_prompt_tokens - local
        if params.get("do_remote_decode") and params.get("remote_block_ids"):
            count = min(params["remote_num_tokens"], request.num_prompt_tokens) - local
            return count if count >= self.kv_recompute_threshold else 0
        return 0

    def update_state_after_alloc(self, request: Request, blocks: Any, num_external_tokens: int) -> None:
        params = request.kv_transfer_params
        if not params:
            return
        if self.use_host_buffer and params.get("do_remote_decode"):
            self._reqs_need_save[request.request_id] = request
        elif params.get("do_remote_prefill") or (
            params.get("do_remote_decode")
            and self.is_bidirectional_kv_xfer_enabled
            and not params.get("_remote_blocks_processed")
        ):
            if params.get("remote_block_ids"):
                self._reqs_need_recv[request.request_id] = request
            params["do_remote_prefill"] = False
            params["_remote_blocks_processed"] = True

    def admit(self, request: Request, local: int = 0) -> int:
        """What a scheduler does with a request that it admits; the step's list of reads is cleared after it."""
        promised = self.promised(request, local)
        self.update_state_after_alloc(request, None, promised)
        self._reqs_need_recv.clear()
        return promised


class NixlConnector:
    def __init__(self, config: Any, role: Any, kv_cache_config: Any) -> None:
        worker = role.name == "WORKER"
        self.connector_scheduler = None if worker else ConnectorScheduler()
        self.connector_worker = ConnectorWorker() if worker else None


class MultiConnector:
    def __init__(self, connectors: list[Any]) -> None:
        self._connectors = connectors


class KVConnectorFactory:
    @classmethod
    def create_connector(cls, config: Any, role: Any, kv_cache_config: Any) -> Any:
        return NixlConnector(config, role, kv_cache_config)


WORKER = SimpleNamespace(name="WORKER")
SCHEDULER = SimpleNamespace(name="SCHEDULER")


def vllm_config(role: str | None = "kv_producer", *, engine_id: str = "p0", **extra: Any) -> Any:
    """A configuration; ``role`` None is an engine without a connector."""
    transfer = None
    if role is not None:
        transfer = SimpleNamespace(
            engine_id=engine_id,
            kv_role=role,
            kv_connector="NixlConnector",
            kv_load_failure_policy="fail",
            kv_connector_extra_config={"bidirectional_kv_xfer": True, "decoder_kv_blocks_ttl": 60, **extra},
        )
    return SimpleNamespace(
        kv_transfer_config=transfer,
        cache_config=SimpleNamespace(block_size=128, enable_prefix_caching=True),
        parallel_config=SimpleNamespace(
            data_parallel_size=1, data_parallel_rank=0, tensor_parallel_size=2, pipeline_parallel_size=1, rank=0
        ),
        model_config=SimpleNamespace(model="some/where", served_model_name="tiny"),
    )


def kv_cache_config(groups: int = 1) -> Any:
    """``groups`` groups of two layers with pages of 65,536 bytes."""
    group = SimpleNamespace(kv_cache_spec=SimpleNamespace(page_size_bytes=65_536), layer_names=["a", "b"])
    return SimpleNamespace(num_blocks=512, kv_cache_groups=[group] * groups)
