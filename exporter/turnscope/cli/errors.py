"""What a person is told when a command cannot go on."""

from __future__ import annotations

import os


class Sorry(Exception):
    """One sentence: what, where, what to do. ``run`` prints it and exits with code 2."""


def port_taken(address: str, error: OSError, option: str) -> Sorry:
    """For an address that cannot be listened on."""
    why = os.strerror(error.errno) if error.errno else str(error)
    return Sorry(f"cannot listen on {address} ({why}): stop what uses it or choose another address with {option}")
