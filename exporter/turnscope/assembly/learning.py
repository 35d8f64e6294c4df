"""What the turns of an engine teach about it: how fast it computes prompts, and what a first step usually takes."""

from __future__ import annotations

from statistics import median_low
from typing import Final

from turnscope.assembly.evidence import fetch_reads
from turnscope.assembly.rate import ENOUGH, Prefill, fit, keep
from turnscope.assembly.sources import EngineState
from turnscope.assembly.state import TurnState
from turnscope.assembly.tokens import FINISHED, LOAD_FAILED
from turnscope.model import Turn
from turnscope.semconv import Leg, Status

STEPS: Final = 64
"""Newest first steps remembered."""


def prefill(turn: TurnState, row: Turn) -> Prefill | None:
    """What the turn's P leg computed and how long that took; None where something else may have been in it."""
    leg, prompt, computed = turn.prefill, row.prompt_tokens, row.computed_tokens
    if leg is None or leg.request.leg is not Leg.PREFILL or leg.request.finish_reason not in FINISHED:
        return None
    if leg.request.preemptions or leg.request.scheduled_mono_ns is None or prompt is None or not computed:
        return None
    took_ns = leg.mono_ns - leg.request.scheduled_mono_ns
    if took_ns <= 0 or any(read.state in LOAD_FAILED for read in fetch_reads(turn)):
        return None
    return Prefill(prompt - computed, computed, took_ns)


def learn_prefill(engine: EngineState | None, turn: TurnState, row: Turn) -> None:
    """Take the turn's P leg into its engine's rate. Only of the engine's present start: settings may have changed."""
    if engine is None or turn.prefill is None or turn.prefill.generation != engine.engine.generation:
        return
    new = prefill(turn, row)
    if new is None:
        return
    keep(engine.prefills, new)
    engine.unlearnt += 1
    known = measurements(engine)
    # That takes a while, so only when half of them are new.
    if known == ENOUGH or 2 * engine.unlearnt >= known > ENOUGH:
        engine.rate, engine.unlearnt = fit(engine.prefills), 0


def measurements(engine: EngineState) -> int:
    """That its rate is known by."""
    return sum(len(alike) for alike in engine.prefills.values())


def learn_step(engine: EngineState | None, row: Turn) -> None:
    """Take the turn's first step into what is usual on its decode engine."""
    if engine is not None and row.first_step_ns is not None and row.status == Status.OK:
        engine.first_steps.append(row.first_step_ns)
        del engine.first_steps[:-STEPS]


def usual_step_ns(engine: EngineState | None) -> int | None:
    """The median of the newest; None while they are too few."""
    if engine is None or len(engine.first_steps) < ENOUGH:
        return None
    return median_low(engine.first_steps)
