"""An engine's prefix cache that was emptied, as the scheduler's hook tells of it."""

from __future__ import annotations

from tests.hook.fakes import KVCacheManager
from tests.hook.watches import WatchedScheduler
from turnscope.model import Emptied


def test_each_emptying_that_the_engine_did_is_told_and_its_answer_passed_on() -> None:
    watched = WatchedScheduler()
    manager = watched.scheduler.kv_cache_manager
    assert [manager.reset_prefix_cache(), manager.reset_prefix_cache()] == [True, True]
    assert watched.events() == [Emptied(), Emptied()]


def test_one_that_it_refused_is_none() -> None:
    watched = WatchedScheduler()
    watched.scheduler.kv_cache_manager.used = 1
    assert watched.scheduler.kv_cache_manager.reset_prefix_cache() is False
    assert watched.events() == []


def test_a_hook_that_is_off_lets_it_be_emptied() -> None:
    watched = WatchedScheduler()
    watched.guard.on = False
    assert watched.scheduler.kv_cache_manager.reset_prefix_cache() is True
    assert watched.events() == []


def test_an_engine_whose_cache_cannot_be_emptied_is_watched_all_the_same() -> None:
    class Without(KVCacheManager):
        reset_prefix_cache = None  # type: ignore[assignment]

    watched = WatchedScheduler()
    assert watched.watch.wrapped == ["scheduler", "nixl_scheduler", "kv_cache_manager"]
    watched.scheduler.kv_cache_manager = Without()
    watched.watch.wrapped.clear()
    watched.watch.attach(watched.scheduler)
    assert "kv_cache_manager" not in watched.watch.wrapped
