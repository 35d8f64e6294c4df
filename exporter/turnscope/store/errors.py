"""What can go wrong with a store, as two kinds of error: one that only a person can mend, one that passes.

Every message is one sentence that says what failed, where, and what to do.
"""

from __future__ import annotations

import errno
from typing import Final

_PERMANENT: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENOENT, errno.EINVAL, errno.EEXIST}
)
_NO_CREDENTIALS: Final = frozenset({"NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"})


class StoreError(Exception):
    """Base of both kinds."""


class StorePermanentError(StoreError):
    """Trying again will not help: not writable, missing, broken, or taken by another writer."""


class StoreTransientError(StoreError):
    """Trying again later may help: a full disk, an unreachable or busy object store. Nothing was lost."""


class StoreMissing(StorePermanentError):
    """There is no store at that place."""


class StoreGone(StorePermanentError):
    """The store was removed while it was written."""


class StoreBroken(StorePermanentError):
    """There is a store, and a part of it cannot be read."""


def from_os(error: BaseException, doing: str, where: str) -> StoreError:
    """The store's error for one raised by the file system or by the object store's client."""
    known = isinstance(error, OSError) and error.strerror
    text = known or f"{type(error).__name__}: {error}".rstrip(": ")
    if isinstance(error, PermissionError):
        return StorePermanentError(
            f"Not allowed to {doing} {where} ({text}): give this user access or choose another store."
        )
    if type(error).__name__ in _NO_CREDENTIALS:
        return StorePermanentError(f"Cannot {doing} {where}: no credentials found; set them as for any AWS client.")
    if isinstance(error, FileNotFoundError):
        return StorePermanentError(
            f"Cannot {doing} {where}: it does not exist ({text}); create it or choose another store."
        )
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return StoreTransientError(f"Cannot {doing} {where}: the disk is full; free some space, rows wait meanwhile.")
    if isinstance(error, OSError) and error.errno in _PERMANENT:
        return StorePermanentError(f"Cannot {doing} {where} ({text}): check the path, or choose another store.")
    return StoreTransientError(f"Cannot {doing} {where} just now ({text}): it will be tried again.")
