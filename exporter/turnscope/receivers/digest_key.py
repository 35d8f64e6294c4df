"""The sidecar's secret for digests: made once, kept beside its data, told to hooks that ask and to nobody else."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

NAME: Final = "digest.key"
_BYTES: Final = 32


class BadKey(ValueError):
    """The file holds no key: one sentence with what to do."""


def load_or_make(folder: Path) -> str:
    """The key in ``folder``, 64 hex digits, made on first use and readable by its owner only.

    Raises ``BadKey`` for a file that holds something else, and ``OSError``.
    """
    path = folder / NAME
    try:
        key = path.read_text().strip()
    except FileNotFoundError:
        return _make(path)
    except UnicodeDecodeError:
        key = ""
    if len(key) < _BYTES or not key.isascii() or not key.isprintable():
        raise BadKey(f"{path} holds no key: remove it, and a new one is made")
    return key


def _make(path: Path) -> str:
    key = secrets.token_hex(_BYTES)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all, and never readable by others, not even for a moment.
    part = path.with_suffix(".new")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
    return key
