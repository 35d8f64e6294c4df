"""Data that crosses module borders: the events hooks send, and the facts assembly makes of them.

Units are in the names: ``_ns`` integer nanoseconds, ``_bytes`` integer bytes, ``_tokens`` integer tokens.
``wall_ns`` is Unix time; ``mono_ns`` is the emitting process's ``time.monotonic_ns()``, comparable only
within one host. ``None`` always means "not measured", never zero.
"""

from __future__ import annotations

from turnscope.model.advice import INSTALL_ALL, INSTALL_HOOK, SESSION_ADVICE, plural, shown
from turnscope.model.counted import (
    Contribution,
    Count,
    Fact,
    Final,
    Gauge,
    Revision,
    Sample,
)
from turnscope.model.events import (
    BODIES,
    AnyBody,
    Attempt,
    Body,
    Digest,
    Emptied,
    EngineState,
    Event,
    Fabric,
    Handle,
    Heartbeat,
    Hold,
    HoldUse,
    Request,
    Stuck,
    Transfer,
)
from turnscope.model.facts import (
    TTFT_FIELDS,
    HoldRecord,
    Turn,
    TurnAttempt,
)
from turnscope.model.figures import Figures, Period
from turnscope.model.processes import ProcessRecord, Skew
from turnscope.model.sessions import Activity, Ceiling, Evaluation, Segment, SessionSummary, Task
from turnscope.model.sources import (
    Emitter,
    Engine,
)
from turnscope.model.spans import AgentSpan
from turnscope.model.status import (
    AssemblyStatus,
    ClockStatus,
    EmitterStatus,
    EngineStatus,
    ExporterStatus,
    FabricStatus,
    FabricWindow,
    HeldStatus,
    SteppedClock,
    SystemStatus,
)
from turnscope.model.units import SECOND_NS

__all__ = [
    "BODIES",
    "INSTALL_ALL",
    "INSTALL_HOOK",
    "SECOND_NS",
    "SESSION_ADVICE",
    "TTFT_FIELDS",
    "Activity",
    "AgentSpan",
    "AnyBody",
    "AssemblyStatus",
    "Attempt",
    "Body",
    "Ceiling",
    "ClockStatus",
    "Contribution",
    "Count",
    "Digest",
    "Emitter",
    "EmitterStatus",
    "Emptied",
    "Engine",
    "EngineState",
    "EngineStatus",
    "Evaluation",
    "Event",
    "ExporterStatus",
    "Fabric",
    "FabricStatus",
    "FabricWindow",
    "Fact",
    "Figures",
    "Final",
    "Gauge",
    "Handle",
    "Heartbeat",
    "HeldStatus",
    "Hold",
    "HoldRecord",
    "HoldUse",
    "Period",
    "ProcessRecord",
    "Request",
    "Revision",
    "Sample",
    "Segment",
    "SessionSummary",
    "Skew",
    "SteppedClock",
    "Stuck",
    "SystemStatus",
    "Task",
    "Transfer",
    "Turn",
    "TurnAttempt",
    "plural",
    "shown",
]
