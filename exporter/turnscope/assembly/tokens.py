"""What really became of a P leg's prompt tokens, as against what the engine reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from turnscope.model import Request, Transfer
from turnscope.semconv import Direction, TransferState

FINISHED: Final = ("stop", "length", "repetition")
"""Finish reasons of a request that ended by itself."""
LOAD_FAILED: Final = frozenset({TransferState.FAILED, TransferState.DECLINED, TransferState.HANDSHAKE_FAILED})


class Reported(msgspec.Struct, frozen=True):
    """The engine's own numbers, clamped to what is possible; they add up to the prompt."""

    prompt: int
    local: int
    external: int
    computed: int
    consistent: bool


class Split(msgspec.Struct, frozen=True):
    """local + fetched + external + computed = prompt, or all four None: not measured."""

    prompt: int
    local: int | None = None
    fetched: int | None = None
    external: int | None = None
    computed: int | None = None


def reported(request: Request) -> Reported | None:
    """None when the request was never scheduled."""
    if request.local_hit_tokens is request.external_tokens is request.computed_tokens is None:
        return None
    local, external, computed = request.local_hit_tokens or 0, request.external_tokens or 0, request.computed_tokens
    prompt = max(0, request.input_tokens)
    fair_external = min(max(0, external), prompt)
    fair_local = min(max(0, local), prompt - fair_external)
    rest = prompt - fair_local - fair_external
    consistent = (local, external, prompt) == (fair_local, fair_external, request.input_tokens) and (
        computed is None or computed == rest
    )
    return Reported(prompt, fair_local, fair_external, rest, consistent)


def prefilled(request: Request) -> bool:
    """Whether its prompt was worked through: what it reports is what was done, not only what it set out to do.

    An engine fills the statistics in when it admits a request, and hands them on with the first token.
    """
    return request.stats_sent or request.finish_reason in FINISHED


def split(request: Request, reads: Sequence[Transfer], *, has_handle: bool) -> Split:
    """The split by what was seen of the leg's reverse fetch.

    A load that failed brought nothing: what was to be fetched was computed, or, where the engine failed the request,
    nothing is known to have been; the same of a request that ended before its first token. External tokens are fetched
    only if a handle was given and not all its ranks answered it with a mere notice.
    """
    numbers = reported(request)
    prompt = max(0, request.input_tokens)
    if numbers is None or not prefilled(request):
        return Split(prompt)
    states = {read.state for read in reads if read.direction is not Direction.HANDOFF}
    if states & LOAD_FAILED:
        if request.finish_reason not in FINISHED:
            return Split(prompt)
        return Split(prompt, numbers.local, 0, 0, prompt - numbers.local)
    fetched = has_handle and states != {TransferState.NOTICE_ONLY}
    return Split(
        prompt,
        numbers.local,
        numbers.external if fetched else 0,
        0 if fetched else numbers.external,
        numbers.computed,
    )
