"""A session's tasks as a table: how each ended, and what its user saw first beside what the user waited for."""

from __future__ import annotations

from typing import Final

import msgspec
import pandas as pd

from turnscope.model import Evaluation, Task
from turnscope_app import frames, text, words
from turnscope_app.columns import Column, Kind, Row

MOST: Final = 1_000
"""Rows of the table at most."""


def columns(tasks: list[Task]) -> list[Column]:
    """Those to show: without evaluations where no task has any."""
    judged = any(task.evaluations for task in tasks)
    return [column for column in _COLUMNS if judged or column is not _EVALUATION]


def frame(tasks: list[Task]) -> pd.DataFrame:
    """One row a task, the first ``MOST``."""
    return frames.of([msgspec.structs.asdict(task) for task in tasks[:MOST]], columns(tasks))


def _mostly(row: Row) -> str:
    parts = {part: row[f"{part}_ns"] for part in words.PARTS}
    part = max(parts, key=lambda name: parts[name])
    return f"{words.PARTS[part].plain}, {text.share(parts[part], sum(parts.values()))}" if parts[part] else ""


def _evaluations(row: Row) -> str:
    return ", ".join(map(_evaluation, row["evaluations"]))


def _evaluation(one: Evaluation) -> str:
    score = f"{one.score:g}" if one.score is not None else None
    said = one.label if one.label is not None else score
    return text.harmless(": ".join(told for told in (one.name, said) if told is not None))


_EVALUATION: Final = Column(
    "evaluations",
    "Evaluation",
    "Results that its spans carry (gen_ai.evaluation.*). They stand beside how it ended and do not decide it.",
    value=_evaluations,
)
_COLUMNS: Final = (
    Column("number", "Task", "Its number in the session.", Kind.COUNT, width=60),
    Column(
        "outcome",
        "Ended",
        "completed: answered. failed: its last turn ended in an error. abandoned: cancelled, or left for another "
        "message. unknown: it had asked for a tool, and nothing came after.",
    ),
    Column("first_token_ns", "First token", "From the user's message to what moves first.", Kind.SECONDS),
    Column("latency_ns", "Whole task", "Of a completed task: what the user waits for.", Kind.SECONDS),
    _EVALUATION,
    Column("mostly", "Mostly", "The part that most of it was spent on.", width=210, value=_mostly),
    Column("turns", "Turns", "Model calls.", Kind.COUNT),
    Column("tools", "Tools", "That ran, where spans tell of tools; else that answers asked for.", Kind.COUNT),
    Column("errors", "Errors", "Turns that failed, and tools that ended in error.", Kind.COUNT),
    Column("started_ns", "Started", "When the user's message came, or the agent began.", Kind.TIME),
    Column("context_tokens", "Prompt at its begin", "Length of the prompt of its first turn.", Kind.TOKENS),
    Column("recomputed_tokens", "Computed again", "Had been computed in this session before.", Kind.TOKENS),
)
