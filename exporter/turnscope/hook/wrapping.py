"""The only two places where vLLM's classes are changed: where schedulers and connectors are made.

Everything else is put on the instances by their watches. The wrappers pass on what the originals return or raise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

_MARK: Final = "__turnscope__"


def wrap_scheduler(scheduler: type[Any], begun: Callable[[Any], None]) -> None:
    """Have ``begun(instance)`` called after the class's ``__init__``; it never raises. Once, however often called."""
    init = scheduler.__init__
    if getattr(init, _MARK, False):
        return

    @wraps(init)
    def new_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        begun(self)

    setattr(new_init, _MARK, True)
    scheduler.__init__ = new_init


def wrap_factory(factory: type[Any], created: Callable[[Any, Any, Any, Any], None]) -> None:
    """Have ``created(connector, config, role, kv_cache_config)`` called for each; it never raises. Once."""
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
