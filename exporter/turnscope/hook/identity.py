"""What of an engine's configuration decides whether equal tokens are equal KV, and how its sequences fall apart.

P and D of one deployment must come to the same, however each was started: a difference here makes every comparison
between them say "other text". So nothing is taken that two engines of one model may spell differently, such as paths,
served names, revisions, weight formats or parallelism; what is left out and why is in ``docs/architecture.md``.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

_SHAPE: Final = (
    "model_type",
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
)


class DigestFacts(NamedTuple):
    """Of one engine."""

    model: str | None
    """The architecture and its sizes, as JSON; None where the configuration has none."""
    stops: tuple[int, ...]
    """Token ids with which the model ends a message."""
    media_told: bool
    """Media are named by their content; else every request gives them names of its own, and nothing compares."""


def digest_facts(vllm_config: Any) -> DigestFacts:
    """Read with care; what is not there is left out."""
    model = getattr(vllm_config, "model_config", None)
    config = getattr(model, "hf_config", None)
    text = getattr(model, "hf_text_config", None) or config
    shape = {name: getattr(text, name, None) for name in _SHAPE}
    known = {name: value for name, value in shape.items() if isinstance(value, int | str)}
    return DigestFacts(
        model=msgspec.json.encode(known).decode() if known else None,
        stops=_stops(config) or _stops(text),
        media_told=_media_told(model, getattr(vllm_config, "cache_config", None)),
    )


def _stops(config: Any) -> tuple[int, ...]:
    ids = getattr(config, "eos_token_id", None)
    listed = ids if isinstance(ids, list | tuple) else [ids]
    return tuple(sorted(n for n in listed if type(n) is int and 0 <= n < 2**32))


def _media_told(model: Any, cache: Any) -> bool:
    """vLLM spares itself the hashing where neither of its caches would use the names."""
    settings = getattr(model, "multimodal_config", None)
    return getattr(settings, "mm_processor_cache_gb", None) != 0 or bool(getattr(cache, "enable_prefix_caching", True))
