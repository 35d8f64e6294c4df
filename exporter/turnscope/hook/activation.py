"""Connects vLLM's objects, as they are made, with watches and this process's runtime."""

from __future__ import annotations

import multiprocessing
import secrets
from collections.abc import MutableMapping
from types import ModuleType
from typing import Any, Final

from turnscope.emit import settings as names
from turnscope.emit.after_import import after_import
from turnscope.emit.guard import Guard
from turnscope.emit.runtime import LOG, runtime
from turnscope.emit.settings import Settings, read
from turnscope.hook.digests import Digests
from turnscope.hook.engine_facts import children, engine_facts, group_bytes, nixl_side
from turnscope.hook.identity import digest_facts
from turnscope.hook.scheduler import SchedulerWatch
from turnscope.hook.worker import WorkerWatch
from turnscope.hook.wrapping import wrap_factory, wrap_scheduler

_RAY_LIST: Final = "VLLM_RAY_EXTRA_ENV_VARS_TO_COPY"
_SCHEDULER: Final = "vllm.v1.core.sched.scheduler"
_FACTORY: Final = "vllm.distributed.kv_transfer.kv_connector.factory"


def activate(environment: MutableMapping[str, str]) -> None:
    """Prepare this process and, through ``environment``, its children. Raises SettingsError for wrong settings."""
    found = read(environment)
    if found is None:
        return
    share_generation(environment, multiprocessing.current_process().name)
    let_ray_copy(environment)
    activation = Activation(found, environment)
    after_import(_SCHEDULER, activation.wrap_scheduler)
    after_import(_FACTORY, activation.wrap_factory)


def share_generation(environment: MutableMapping[str, str], process_name: str) -> None:
    """Give this process and those it starts one generation.

    The first process of a server sets it and all inherit it. An engine core is what a generation is about and starts
    its workers itself, so it makes its own: a core started anew by a server that lives on is a new one.
    """
    inherited = environment.get(names.GENERATION)
    if not inherited or process_name.startswith("EngineCore"):
        environment[names.GENERATION] = secrets.token_hex(8)


def let_ray_copy(environment: MutableMapping[str, str]) -> None:
    """Ray hands only listed variables to its workers."""
    listed = [name for name in environment.get(_RAY_LIST, "").split(",") if name.strip()]
    environment[_RAY_LIST] = ",".join([*listed, *(name for name in names.VARIABLES if name not in listed)])


class Activation:
    """What happens to vLLM's classes and objects in a process with these settings."""

    def __init__(self, settings: Settings, environment: MutableMapping[str, str]) -> None:
        self._settings = settings
        self._environment = environment

    def wrap_scheduler(self, module: ModuleType) -> None:
        """The scheduler's module is there."""
        try:
            wrap_scheduler(module.Scheduler, self.scheduler_begun)
        except Exception as error:
            LOG.warning("turnscope: this engine's scheduler cannot be watched: %r", error)

    def wrap_factory(self, module: ModuleType) -> None:
        """The connector factory's module is there."""
        try:
            wrap_factory(module.KVConnectorFactory, self.connector_created)
        except Exception as error:
            LOG.warning("turnscope: this engine's connectors cannot be watched: %r", error)

    def scheduler_begun(self, scheduler: Any) -> None:
        """A scheduler has been made; called after the end of its ``__init__``."""
        try:
            process = runtime(self._settings)
            kv_cache = getattr(scheduler, "kv_cache_config", None)
            engine = engine_facts(
                scheduler.vllm_config,
                kv_cache,
                getattr(scheduler, "connector", None),
                generation=self._environment[names.GENERATION],
                name=self._settings.engine_name,
            )
            digests = Digests(process.secret, digest_facts(scheduler.vllm_config)) if self._settings.digests else None
            watch = SchedulerWatch(
                rings=process.rings,
                guard=Guard("scheduler hook"),
                emitter=process.emitter("engine"),
                engine=engine,
                group_bytes=group_bytes(kv_cache),
                ranks=(engine.tp_size or 1) * (engine.pp_size or 1),
                digests=digests,
            )
            if digests is not None:
                process.jobs.append(digests)
            watch.attach(scheduler)
            process.add(watch)
        except Exception as error:
            LOG.warning("turnscope: this engine's requests are not watched: %r", error)

    def connector_created(self, connector: Any, config: Any, role: Any, kv_cache_config: Any) -> None:
        """A connector has been made. The scheduler's half is looked at when its scheduler is done."""
        if getattr(role, "name", "") != "WORKER":
            return
        for child in children(connector):
            try:
                worker = nixl_side(child)
                found = hasattr(worker, "nixl_wrapper")
            except Exception as error:
                LOG.warning("turnscope: a connector cannot be looked at and is left alone: %r", error)
                continue
            if found:
                self._watch_worker(worker, connector, config, kv_cache_config)

    def _watch_worker(self, worker: Any, connector: Any, config: Any, kv_cache_config: Any) -> None:
        try:
            process = runtime(self._settings)
            rank = getattr(config.parallel_config, "rank", None)
            watch = WorkerWatch(
                rings=process.rings,
                guard=Guard("NIXL hook"),
                emitter=process.emitter("worker"),
                engine=engine_facts(
                    config,
                    kv_cache_config,
                    connector,
                    generation=self._environment[names.GENERATION],
                    name=self._settings.engine_name,
                    rank=getattr(worker, "tp_rank", 0) if rank is None else rank,
                ),
            )
        except Exception as error:
            LOG.warning("turnscope: this worker's transfers are not watched: %r", error)
            return
        try:
            watch.attach(worker)
            process.add(watch)
        except Exception as error:
            watch.guard.on = False
            watch.guard.broken = True
            LOG.warning("turnscope: this worker's transfers are not watched: %r", error)
