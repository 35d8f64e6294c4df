"""Digests from the hook into a sidecar: the key goes one way, and nothing that tells a token is kept anywhere."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx

from tests.builders import Pair
from tests.cli.served import served
from turnscope.decode import codec, jsonlines
from turnscope.emit.secret import Secret
from turnscope.emit.sender import GrpcSender, Outcome
from turnscope.emit.settings import Endpoint
from turnscope.marks import Keys, digest
from turnscope.model import Digest, Event
from turnscope.receivers.digest_key import NAME
from turnscope.semconv import Leg

IDS = [1_000_003 + 7 * n for n in range(3000)]


def test_the_key_comes_from_the_sidecar_and_neither_it_nor_any_token_is_in_what_is_kept(tmp_path: Path) -> None:
    recording, pair, secret = tmp_path / "recording.jsonl", Pair(), Secret()
    secret.want()
    with served(tmp_path, "--grace-seconds", "0", "--record", str(recording)) as sidecar:
        sender = GrpcSender(Endpoint(f"127.0.0.1:{sidecar.otlp}"), secret)
        first = codec.encode([*pair.start(), *pair.turn("1")], observed_ns=1)
        assert sender.send(first.SerializeToString(), 30)[0] is Outcome.SENT
        key = (sidecar.data / NAME).read_text().strip()
        assert secret.value == key.encode()
        made = digest(IDS, Keys(key.encode()), request_id="p-1", leg=Leg.PREFILL, input_tokens=len(IDS))
        sent: Event = pair.p.say(made, 500)
        assert sender.send(codec.encode([sent], observed_ns=1).SerializeToString(), 30)[0] is Outcome.SENT
        sender.close()
        sidecar.settled(1)
        pages = [httpx.get(f"{sidecar.url}/{page}", trust_env=False).content for page in ("metrics", "status")]
        assert sidecar.end(signal.SIGTERM) == 0
    lines = [codec.decode(jsonlines.read(line)).events for line in recording.read_bytes().splitlines()]
    assert made in [event.body for events in lines for event in events if isinstance(event.body, Digest)]
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != NAME]
    assert any("journal" in str(path) for path in files)
    for content in [*pages, *(path.read_bytes() for path in files)]:
        assert key.encode() not in content
        assert bytes.fromhex(key) not in content
        for number in IDS[::50]:
            assert str(number).encode() not in content
            assert number.to_bytes(4, "little") not in content
            assert number.to_bytes(4, "big") not in content
