"""Network cards made of files, which count what a real pair says that it moved, and two sidecars that look at them.

The pair runs on one host. Beside the run's own sidecar two more hear the same events: to one both engines are on the
node of the cards, to the other P is elsewhere. A trial lasts from one look at the cards to the next.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import msgspec

from live.driver import TurnTruth
from live.engines import LiveError, Pair
from live.looks import LOOK_S, Looks
from live.sidecar import Sidecar, running_sidecar
from live.sysfs import Sysfs
from live.tee import Copy, prefill_elsewhere, running_tee
from live.trials import APART, BEGIN, TOGETHER, TRIALS, Done, Trial, plugged
from turnscope.measures import reconcile
from turnscope.model import FabricStatus

TRIES = 8
"""A look that comes in the middle of a trial has seen a part of it only: then it is done again."""
CLOSED_S = 4.0
"""After the look at its end a window waits for the last reads of its time, and the page for its own."""
SETTLE_S = 15.0
STILL_S = 0.2
"""An engine counts a read in the step after it."""
Ask = Callable[[], Sequence[TurnTruth]]
"""Has one turn done."""


@dataclass
class Cards:
    """The cards, and the sidecars that look at them."""

    endpoint: str
    """For the engines' hooks."""
    tree: Sysfs
    views: dict[str, Sidecar]
    done: list[Done] = field(default_factory=list)

    def hold(self, pair: Pair, ask: Ask, say: Callable[[str], None]) -> None:
        """Do every trial."""
        looks = Looks({view: partial(_nodes, sidecar) for view, sidecar in self.views.items()})
        begun = [(trial, *self._again(trial, looks, pair, ask, say)) for trial in TRIALS]
        looks.watch(LOOK_S + CLOSED_S)
        for trial, turns, ended in begun:
            windows = {view: looks.window(view, ended) for view in self.views}
            self.done.append(Done(trial, turns, windows))
            seen = (f"{view} {said.transport if said else '-'}" for view, said in windows.items())
            say(f"  cards, {trial.name + ':':<16} {', '.join(seen)}")

    def _again(
        self, trial: Trial, looks: Looks, pair: Pair, ask: Ask, say: Callable[[str], None]
    ) -> tuple[list[TurnTruth], float]:
        """Its turns, and when it ended; no turns, if it could not be done from one look to the next."""
        for _ in range(TRIES):
            trial.before(self.tree)
            upcoming = looks.wait()
            if upcoming is None:
                break
            turns = self._once(trial, pair, ask)
            ended = time.monotonic()
            if ended < upcoming:
                return turns, ended
            say(f"  cards, {trial.name}: a look came in between, once more")
        return [], time.monotonic()

    def _once(self, trial: Trial, pair: Pair, ask: Ask) -> list[TurnTruth]:
        turns: list[TurnTruth] = []
        moved = _moved(pair)
        for number in range(trial.turns):
            if number:
                trial.between(self.tree)
            turns += ask()
            now = _settled(pair, moved)
            trial.count(self.tree, now - moved)
            moved = now
        return turns


@contextlib.contextmanager
def running_cards(folder: Path, main: str) -> Iterator[Cards]:
    """One EFA card, one Ethernet card, the two sidecars, with all of theirs under ``folder``, and the way to them and
    to the run's own at ``main``."""
    tree = Sysfs(folder / "sys")
    plugged(tree)
    tree.add_ethernet(value=BEGIN)
    looking = ["--infiniband-dir", str(tree.infiniband), "--net-dir", str(tree.net)]
    looking += ["--fabric-seconds", str(LOOK_S), "--fabric-window-seconds", str(LOOK_S - 0.5)]
    with contextlib.ExitStack() as stack:
        starting = {view: running_sidecar(folder / view, arguments=looking) for view in (TOGETHER, APART)}
        # At the same time, so that they look at nearly the same times.
        with ThreadPoolExecutor(len(starting)) as pool:
            views = dict(zip(starting, pool.map(stack.enter_context, starting.values()), strict=True))
        copies = [Copy(views[TOGETHER].endpoint), Copy(views[APART].endpoint, prefill_elsewhere("elsewhere"))]
        yield Cards(stack.enter_context(running_tee(main, copies)), tree, views)


def _nodes(sidecar: Sidecar) -> list[FabricStatus]:
    content = json.loads(sidecar.page("/status"))["assembly"]["fabric"]
    return msgspec.convert(content, list[FabricStatus])


def _moved(pair: Pair) -> int:
    """Bytes that both engines have read, as they count them themselves."""
    pages = (httpx.get(f"{engine.url}/metrics", timeout=30).raise_for_status().text for engine in pair.engines)
    return sum(reconcile.theirs(page).get("transfer bytes", 0) for page in pages)


def _settled(pair: Pair, before: int) -> int:
    """The same once more than ``before`` is counted, and no more comes."""
    deadline, last = time.monotonic() + SETTLE_S, before
    while time.monotonic() < deadline:
        now = _moved(pair)
        if now == last > before:
            return now
        last = now
        time.sleep(STILL_S)
    raise LiveError(f"The engines have counted no transfer for {SETTLE_S:.0f} s after an answer.")
