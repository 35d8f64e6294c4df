"""Do the hosts' wall clocks agree? Durations do not depend on it; where things stand in a trace does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.measures.finding import Finding, Severity
from turnscope.model import SystemStatus, plural

SKEW_S: Final = 0.1
"""More shows in a trace: spans of P and D stand before what caused them."""

_FIX: Final = "Keep the hosts' clocks in step (chrony or systemd-timesyncd)."


def clocks_apart(status: SystemStatus) -> Iterator[Finding]:
    """Two hosts whose clocks surely differ: by more than the error of the comparison."""
    for clock in status.assembly.clocks:
        if abs(clock.skew_s) - clock.error_s > SKEW_S:
            yield Finding(
                severity=Severity.WARNING,
                check="clocks_apart",
                where=f"hosts {clock.host or 'without a name'} and {clock.other or 'without a name'}",
                what=f"The second one's clock is {abs(clock.skew_s):.3f} s (+-{clock.error_s:.3f}) "
                f"{'ahead' if clock.skew_s > 0 else 'behind'}, by {plural(clock.seen, 'turn')} that both took part "
                "in: parts of a turn are shown that far from where they belong. Durations are right.",
                fix=_FIX,
            )


def clock_stepped(status: SystemStatus) -> Iterator[Finding]:
    """A host whose wall clock was set while it was watched."""
    for clock in status.assembly.stepped:
        times = "once" if clock.steps == 1 else f"{clock.steps} times"
        yield Finding(
            severity=Severity.NOTE,
            check="clock_stepped",
            where=f"host {clock.host or 'without a name'}",
            what=f"Its clock was set {times}, last by {clock.last_s:+.1f} s: turns before and after stand in the wrong "
            "order in time. Durations are right.",
            fix=_FIX,
        )
