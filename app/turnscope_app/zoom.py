"""Which part of a drawing is shown, and the steps to a nearer, a wider, an earlier or a later one."""

from __future__ import annotations

from typing import Final, NamedTuple

_LEAST: Final = 1 / 4096
"""Of the whole, what is shown at least."""
_STEP: Final = 0.5
"""Of what is shown, how far it is moved."""


class View(NamedTuple):
    """From ``low`` to ``high`` of the whole, 0 to 1."""

    low: float = 0.0
    high: float = 1.0

    @property
    def share(self) -> float:
        """How much of the whole is shown."""
        return self.high - self.low

    def nearer(self) -> View:
        """The half in the middle."""
        return self._of(max(_LEAST, self.share / 2))

    def wider(self) -> View:
        """Twice as much, at most the whole."""
        return self._of(min(1.0, self.share * 2))

    def earlier(self) -> View:
        """What comes before, half of it as before; at the begin, the begin."""
        return self._at(self.low - self.share * _STEP)

    def later(self) -> View:
        """What comes after."""
        return self._at(self.low + self.share * _STEP)

    def _of(self, share: float) -> View:
        middle = (self.low + self.high) / 2
        return View(0.0, share)._at(middle - share / 2)

    def _at(self, low: float) -> View:
        share = self.share
        inside = min(max(0.0, low), 1.0 - share)
        return View(inside, inside + share)


WHOLE: Final = View()
