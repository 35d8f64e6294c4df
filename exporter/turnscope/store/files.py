"""Where the bytes lie: a local folder or an S3 bucket, behind one small interface."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from turnscope.model import INSTALL_ALL
from turnscope.store.errors import StoreError, StoreGone, StorePermanentError, from_os

Fill = Callable[[IO[bytes]], None]
_CONFLICT: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412"})


class Files(Protocol):
    """Paths are relative to the store. Methods raise StoreError, and FileNotFoundError where they say so."""

    url: str

    def read(self, path: str) -> tuple[bytes, str]:
        """The content and a version for ``replace``; FileNotFoundError if it is not there."""

    def names(self, folder: str) -> list[str]:
        """Every file below ``folder``; none if it does not exist."""

    def write(self, path: str, fill: Fill) -> int:
        """Let ``fill`` write a new file, make it durable, and return its size."""

    def replace(self, path: str, data: bytes, version: str) -> str:
        """Replace the content at once, if it still has ``version`` ("" = must not exist); returns the new version."""

    def delete(self, path: str) -> None:
        """Delete it if it is there."""

    def address(self, path: str) -> str:
        """What DuckDB opens."""

    def claim(self, path: str) -> None:
        """Keep other writers of this machine from using ``path``; until ``close``."""

    def register(self, connection: Any) -> None:
        """Teach a DuckDB connection to open ``address``."""

    def close(self) -> None: ...


def open_files(url: str) -> Files:
    """The files of the store at ``url``: a local path or ``s3://bucket/prefix``."""
    scheme, sep, _ = url.partition("://")
    if sep and scheme == "s3":
        return S3Files(url)
    if sep and scheme != "file":
        raise StorePermanentError(f"a store cannot be at {url}: use a local folder or s3://bucket/folder")
    if not url.removeprefix("file://"):
        raise StorePermanentError("the store's address is empty: use a local folder or s3://bucket/folder")
    return LocalFiles(url)


class LocalFiles:
    """A folder. The manifest is replaced by rename; a lock file keeps a second writer of the same name out."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._root = Path(url.removeprefix("file://")).expanduser().absolute()
        self._lock: IO[bytes] | None = None

    def read(self, path: str) -> tuple[bytes, str]:
        try:
            data = (self._root / path).read_bytes()
            return data, _digest(data)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise from_os(error, "read", self.address(path)) from error

    def names(self, folder: str) -> list[str]:
        try:
            if self._root.exists() and not self._root.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "it is a file and no folder")
            if not os.access(self._root, os.R_OK | os.X_OK) and self._root.exists():
                raise PermissionError(errno.EACCES, "Permission denied")
            found = (self._root / folder).rglob("*")
            return sorted(p.relative_to(self._root).as_posix() for p in found if p.is_file())
        except OSError as error:
            raise from_os(error, "list", self.address(folder)) from error

    def write(self, path: str, fill: Fill) -> int:
        target = self._root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with target.open("xb") as file:
                    fill(file)
                    file.flush()
                    os.fsync(file.fileno())
                    size = file.tell()
            except BaseException:
                target.unlink(missing_ok=True)
                raise
            _sync_folder(target.parent)
            return size
        except OSError as error:
            raise from_os(error, "write", str(target)) from error

    def replace(self, path: str, data: bytes, version: str) -> str:
        target = self._root / path
        part = target.with_name(target.name + ".part")
        try:
            current = _digest(target.read_bytes()) if target.exists() else ""
            if version and not current:
                raise StoreGone(
                    f"the store {self.url} was removed while it was written: start the writer anew, which begins a new "
                    "store; turnscope serve puts into it what its journal has"
                )
            if current != version:
                raise taken(self.url, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
            _sync_folder(target.parent)
        except OSError as error:
            raise from_os(error, "write", str(target)) from error
        return _digest(data)

    def delete(self, path: str) -> None:
        try:
            (self._root / path).unlink(missing_ok=True)
        except OSError as error:
            raise from_os(error, "delete", self.address(path)) from error

    def address(self, path: str) -> str:
        return str(self._root / path)

    def claim(self, path: str) -> None:
        lock = self._root / f"{path}.lock"
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            self._lock = lock.open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise taken(self.url, path) from None
        except OSError as error:
            self.close()
            raise from_os(error, "write to the store", str(self._root)) from error

    def register(self, connection: Any) -> None:
        """DuckDB opens local files by itself."""

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


class S3Files:
    """A bucket, through fsspec. The manifest is replaced by a conditional put, which keeps a second writer out."""

    def __init__(self, url: str) -> None:
        import fsspec

        self.url = url
        self._root = url.removeprefix("s3://").strip("/")
        if not self._root:
            raise StorePermanentError(f"the store's address {url} names no bucket: use s3://bucket/folder")
        try:
            self._fs = fsspec.filesystem("s3", use_listings_cache=False, skip_instance_cache=True)
        except ImportError as error:
            raise StorePermanentError(f"cannot open {url} ({error}): {INSTALL_ALL}") from error

    def read(self, path: str) -> tuple[bytes, str]:
        bucket, key = self._split(path)
        try:
            # The version first: if the object changes in between, a later replace fails rather than overwrites.
            version = self._fs.call_s3("head_object", Bucket=bucket, Key=key)["ETag"]
            return self._fs.cat_file(self._at(path)), cast(str, version)
        except FileNotFoundError:
            raise
        except Exception as error:
            raise from_os(error, "read", self._s3(path)) from error

    def names(self, folder: str) -> list[str]:
        try:
            found = self._fs.find(self._at(folder))
        except FileNotFoundError:
            return []
        except Exception as error:
            raise from_os(error, "list", self._s3(folder)) from error
        return sorted(name.removeprefix(self._root + "/") for name in found)

    def write(self, path: str, fill: Fill) -> int:
        try:
            with self._fs.open(self._at(path), "wb") as file:
                fill(file)
                return int(file.tell())
        except StoreError:
            raise
        except Exception as error:
            raise from_os(error, "write", self._s3(path)) from error

    def replace(self, path: str, data: bytes, version: str) -> str:
        bucket, key = self._split(path)
        condition = {"IfMatch": version} if version else {"IfNoneMatch": "*"}
        try:
            answer = self._fs.call_s3("put_object", Bucket=bucket, Key=key, Body=data, **condition)
        except Exception as error:
            response = getattr(error.__cause__, "response", {})
            if response.get("Error", {}).get("Code") in _CONFLICT:
                raise taken(self.url, path) from None
            raise from_os(error, "write", self._s3(path)) from error
        return cast(str, answer["ETag"])

    def delete(self, path: str) -> None:
        try:
            self._fs.rm_file(self._at(path))
        except FileNotFoundError:
            return
        except Exception as error:
            raise from_os(error, "delete", self._s3(path)) from error

    def address(self, path: str) -> str:
        return self._s3(path)

    def claim(self, path: str) -> None:
        """The conditional put does it."""

    def register(self, connection: Any) -> None:
        connection.register_filesystem(self._fs)

    def close(self) -> None:
        """Connections are closed with the process."""

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _s3(self, path: str) -> str:
        return f"s3://{self._root}/{path}"

    def _split(self, path: str) -> tuple[str, str]:
        bucket, _, key = self._at(path).partition("/")
        return bucket, key


def taken(url: str, path: str) -> StorePermanentError:
    """The error of a second writer of the same name."""
    return StorePermanentError(
        f"another process is writing {path} in the store {url}: stop it, or give this one another writer name"
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
