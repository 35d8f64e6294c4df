"""What a person is told when a command cannot go on."""

from __future__ import annotations


class Sorry(Exception):
    """One sentence: what, where, what to do. ``run`` prints it and exits with code 2."""
