"""What a person is told when a command cannot go on."""

from __future__ import annotations


class Sorry(Exception):
    """What, where, what to do, in one sentence that begins in small letters and has no full stop: ``run`` prints it
    after ``turnscope: `` and exits with code 2."""
