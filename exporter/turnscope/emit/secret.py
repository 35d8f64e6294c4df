"""The secret under which this process makes digests: set by its user, or asked of the sidecar."""

from __future__ import annotations

from turnscope.marks import fingerprint


class Secret:
    """``value`` is None until it is known; then nothing is hashed. The background thread's alone."""

    def __init__(self, given: str | None = None) -> None:
        self.value: bytes | None = given.encode() if given else None
        self.refused = False
        """The other end was asked and gave none: a collector, or a sidecar that knows no digests."""
        self._asks = not given
        self._wanted = False

    def want(self) -> None:
        """Something in this process makes digests: the sidecar is asked, unless the user has set a secret."""
        self._wanted = self._asks

    @property
    def known(self) -> str | None:
        """What to tell the sidecar with each batch: which secret we have, "" for none; None: ask nothing."""
        if not self._wanted:
            return None
        return fingerprint(self.value) if self.value is not None else ""

    def answered(self, value: str | None) -> None:
        """The sidecar took a batch and gave a secret unlike ours, or nothing."""
        if value:
            self.value = value.encode()
        self.refused = self.value is None
