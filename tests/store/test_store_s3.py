"""The store in a bucket: the same promises, with a conditional put in the place of a lock."""

from __future__ import annotations

from collections.abc import Iterator

import fsspec
import pytest
from moto.server import ThreadedMotoServer

from tests.store.rows import HOUR, SECOND, Clock, fill, hold, read_turns, turn, writer
from turnscope.store import StoreMissing, StorePermanentError, StoreReader, StoreTransientError

URL = "s3://bucket/some/store"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty bucket named ``bucket``."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3 = fsspec.filesystem("s3", skip_instance_cache=True)
    s3.mkdir("bucket")
    yield
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    s3.rm("bucket", recursive=True)


@pytest.mark.usefixtures("bucket")
def test_rows_written_to_a_bucket_are_read_from_it() -> None:
    fill(URL, turn(1, suspicions=["kv_mismatch"]), turn(2, left_hold_id="h"), hold(1, hold_id="h", outcome="read"))
    assert [(r["suspicions"], r["hold_outcome"]) for r in read_turns(URL)] == [([], "read"), (["kv_mismatch"], None)]


@pytest.mark.usefixtures("bucket")
def test_a_bucket_is_compacted_and_cleaned_like_a_folder() -> None:
    clock = Clock()
    out = writer(URL, clock)
    for revision in (1, 2):
        out.add_turn(turn(1, revision=revision, path=f"p{revision}"))
        out.flush()
    clock.forward(HOUR)
    out.maintain()
    assert len(out._files.names("turns")) == 3
    clock.forward(600 * SECOND)
    out.maintain()
    assert len(out._files.names("turns")) == 1
    assert [r["path"] for r in read_turns(URL)] == ["p2"]
    out.close()


@pytest.mark.usefixtures("bucket")
def test_of_two_writers_of_one_name_the_older_is_told_and_spoils_nothing() -> None:
    old = writer(URL)
    new = writer(URL)
    new.add_turn(turn(1))
    new.flush()
    old.add_turn(turn(2))
    with pytest.raises(StorePermanentError, match=r"another process is writing manifests/w1\.json"):
        old.flush()
    assert [r["turn_id"][-1] for r in read_turns(URL)] == ["1"]
    new.add_turn(turn(3))
    new.close()
    assert [r["turn_id"][-1] for r in read_turns(URL)] == ["3", "1"]


@pytest.mark.usefixtures("bucket")
def test_a_bucket_that_does_not_exist_is_named() -> None:
    with pytest.raises(StorePermanentError, match=r"s3://nowhere/x/manifests/w1\.json: it does not exist"):
        writer("s3://nowhere/x")


@pytest.mark.usefixtures("bucket")
def test_a_bucket_without_a_store_is_a_missing_store() -> None:
    with pytest.raises(StoreMissing, match=r"there is no turnscope store at s3://bucket/other"):
        StoreReader("s3://bucket/other")


@pytest.mark.usefixtures("bucket")
def test_an_unreachable_object_store_is_a_passing_error(monkeypatch: pytest.MonkeyPatch) -> None:
    out = writer(URL)
    out.close()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StoreTransientError, match="it will be tried again"):
        writer(URL)
