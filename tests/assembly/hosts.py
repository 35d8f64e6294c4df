"""The same events as told by hosts whose clocks differ: booted at other times, set wrong, or set anew meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from tests.builders import SECOND, Pair
from turnscope.model import Event

Move = Callable[[Event], Event]


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One host: what its clocks show when the test's clock shows 0."""

    name: str
    boot_ns: int = 0
    wall_ns: int = 0


def on_hosts(hosts: Mapping[str, Host]) -> Move:
    """Put each emitter on its host: its monotonic times, also those inside bodies, and its wall times move along."""

    def move(event: Event) -> Event:
        host = hosts[event.emitter.id]
        moved = {
            name: value + (host.boot_ns if name.endswith("_mono_ns") else host.wall_ns)
            for name in event.body.__struct_fields__
            if name.endswith(("_mono_ns", "_wall_ns"))
            for value in [getattr(event.body, name)]
            if value is not None
        }
        return msgspec.structs.replace(
            event,
            emitter=msgspec.structs.replace(event.emitter, host=host.name, clock=f"clock of {host.name}"),
            mono_ns=event.mono_ns + host.boot_ns,
            wall_ns=event.wall_ns + host.wall_ns,
            body=msgspec.structs.replace(event.body, **moved),
        )

    return move


def step(emitters: set[str], at_ns: int, by_ns: int) -> Move:
    """Set the wall clock of these processes' host by ``by_ns`` at ``at_ns``: what they tell afterwards is by the new
    time, also of what was before."""

    def move(event: Event) -> Event:
        if event.emitter.id not in emitters or event.mono_ns < at_ns:
            return event
        return msgspec.structs.replace(event, wall_ns=event.wall_ns + by_ns)

    return move


HOUR = 3600 * SECOND
X = Host(name="x", boot_ns=5 * HOUR, wall_ns=0)
A = Host(name="a", boot_ns=90 * HOUR, wall_ns=3 * SECOND)
B = Host(name="b", boot_ns=2 * HOUR, wall_ns=-7 * SECOND)


def apart(pair: Pair, x: Host = X, a: Host = A, b: Host = B) -> Move:
    """Proxy, P and D on hosts of their own."""
    hosts = {pair.p.emitter.id: a, pair.pw.emitter.id: a, pair.d.emitter.id: b, pair.dw.emitter.id: b}
    return on_hosts(hosts | ({pair.proxy.emitter.id: x} if pair.proxy is not None else {}))


def conversation(pair: Pair, turns: int = 4) -> list[Event]:
    """One session, a turn every five seconds, all but the first fetched."""
    events, given = pair.start(), None
    for n in range(turns):
        prompt = 1000 + 250 * n
        fetched = min(given.tokens or 0, prompt) if given is not None else 0
        events += pair.turn(str(n), at_ms=5000 * n, prompt=prompt, fetched=fetched, given=given)
        given = pair.handle(str(n), prompt + 199)
    return [*events, *pair.beats(5000 * turns, 4000)]
