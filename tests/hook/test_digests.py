"""What the scheduler's hook says of a request's tokens, and what it keeps of them until then."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.hook import fakes
from tests.hook.watches import WatchedScheduler
from turnscope.emit.secret import Secret
from turnscope.hook.digests import Digests
from turnscope.hook.identity import DigestFacts, digest_facts
from turnscope.marks import Keys, Media, Shared, common_prefix
from turnscope.marks import digest as made
from turnscope.marks import seed as seeded
from turnscope.model import Body, Digest
from turnscope.semconv import Leg

SECRET = "a secret of many characters"
FACTS = DigestFacts("shape", (), True)
LENGTH = fakes.RequestStatus.FINISHED_LENGTH_CAPPED
ABORTED = fakes.RequestStatus.FINISHED_ABORTED


class Hashing:
    """A watched scheduler whose digests are made when told to."""

    def __init__(
        self,
        role: str | None = "kv_producer",
        *,
        secret: Secret | None = None,
        facts: DigestFacts = FACTS,
        **limit: int,
    ) -> None:
        self.secret = secret or Secret(SECRET)
        self.digests = Digests(self.secret, facts, **limit)
        self.watched = WatchedScheduler(role, digests=self.digests)
        self.pauses = 0

    def end(
        self, request: fakes.Request, *, tokens: int = 1, answer: Any = (False, None), status: Any = LENGTH
    ) -> None:
        """A request runs, gives ``tokens`` and ends."""
        scheduler = self.watched.scheduler
        scheduler.add_request(request)
        if status is not ABORTED:
            scheduler.schedule(request)
            scheduler.output(request, tokens)
        scheduler.answer = answer
        scheduler.finish(request, status)

    def work(self) -> list[Digest]:
        """Hash what waits; the digests of it."""
        return [event for event in self.events() if isinstance(event, Digest)]

    def events(self) -> list[Body]:
        """All events, in the background's order: what has ended, and then the digests of that."""
        ended = self.watched.events()
        self.digests.work(self._pause)
        return ended + self.watched.events()

    def of(self, request: fakes.Request, **how: Any) -> Digest:
        self.end(request, **how)
        (digest,) = self.work()
        return digest

    def _pause(self) -> None:
        self.pauses += 1


def held(tokens: int) -> tuple[bool, dict[str, Any]]:
    return True, fakes.handle("d0", "r1", remote_num_tokens=tokens)


# --- what is covered ----------------------------------------------------------------------------------
def test_p_covers_its_prompt_and_marks_the_end_of_the_handle_it_was_given() -> None:
    digest = Hashing().of(fakes.Request(prompt=1250, params=fakes.handle("d0", "r0")))
    assert (digest.leg, digest.tokens, digest.input_tokens) == (Leg.PREFILL, 1250, 1250)
    assert digest.anchor_tokens == 1199
    expected = made(
        range(1250),
        Keys(SECRET.encode()),
        request_id=digest.request_id,
        leg=Leg.PREFILL,
        input_tokens=1250,
        anchor_tokens=1199,
        seed=seeded("shape", None, None),
    )
    assert digest == expected


def test_d_covers_the_answer_as_far_as_its_kv_exists_and_marks_the_end_of_what_it_holds() -> None:
    params = fakes.handle("p0", "r0", do_remote_prefill=True, do_remote_decode=False)
    digest = Hashing("kv_consumer").of(fakes.Request(prompt=1000, params=params), tokens=600, answer=held(1599))
    assert (digest.leg, digest.tokens, digest.input_tokens, digest.anchor_tokens) == (Leg.DECODE, 1599, 1000, 1599)


def test_what_the_engine_counts_beyond_its_tokens_is_not_covered() -> None:
    hashing, request = Hashing("kv_consumer"), fakes.Request(prompt=100, params=None)
    hashing.watched.scheduler.add_request(request)
    hashing.watched.scheduler.schedule(request)
    hashing.watched.scheduler.output(request, 20)
    request.num_computed_tokens = 140
    hashing.watched.scheduler.answer = held(140)
    hashing.watched.scheduler.finish(request, LENGTH)
    (digest,) = hashing.work()
    assert (digest.tokens, digest.anchor_tokens) == (120, 120)


def test_a_request_that_never_ran_covers_its_prompt() -> None:
    digest = Hashing("kv_consumer").of(fakes.Request(prompt=100), status=ABORTED)
    assert (digest.tokens, digest.anchor_tokens, digest.unverifiable) == (100, None, None)


def test_p_and_d_agree_on_a_turn_and_its_next_one() -> None:
    p, d = Hashing(), Hashing("kv_consumer")
    left = d.of(fakes.Request(prompt=1000, params=None), tokens=200, answer=held(1199))
    request = fakes.Request(prompt=1250, params=fakes.handle("d0", "r0"))
    request._all_token_ids[1000:1199] = [1] * 199
    following = p.of(request)
    assert common_prefix(left, following) == Shared(1199, None)


# --- what makes equal tokens different KV -------------------------------------------------------------
def adapter(name: str, path: str = "/a", number: int = 1) -> Any:
    return SimpleNamespace(lora_name=name, lora_path=path, lora_int_id=number)


@pytest.mark.parametrize(
    "changes",
    [
        {"lora_request": adapter("sql")},
        {"cache_salt": "tenant-7"},
        {
            "mm_features": [
                SimpleNamespace(mm_position=SimpleNamespace(offset=0, length=64), identifier="aa", modality="image")
            ]
        },
    ],
)
def test_equal_tokens_of_another_adapter_salt_or_image_share_nothing(changes: dict[str, Any]) -> None:
    hashing, other = Hashing(), fakes.Request(prompt=500)
    for name, value in changes.items():
        setattr(other, name, value)
    found = common_prefix(hashing.of(fakes.Request(prompt=500)), hashing.of(other))
    assert found is not None
    assert found.low == 0
    assert found.high is not None


def test_one_adapter_is_the_same_however_its_path_is_spelled_and_numbered() -> None:
    one, other = fakes.Request(prompt=500), fakes.Request(prompt=500)
    one.lora_request, other.lora_request = adapter("sql", "/mnt/sql", 1), adapter("sql", "org/sql", 2)
    assert common_prefix(Hashing().of(one), Hashing().of(other)) == Shared(500, None)


def test_an_image_is_told_by_its_identifier_where_it_stands() -> None:
    request = fakes.Request(prompt=500)
    request.mm_features = [
        SimpleNamespace(mm_position=SimpleNamespace(offset=200, length=64), identifier="aa", modality="image")
    ]
    digest = Hashing().of(request)
    expected = made(
        range(500),
        Keys(SECRET.encode()),
        request_id=digest.request_id,
        leg=Leg.WHOLE,
        input_tokens=500,
        seed=seeded("shape", None, None),
        media=[Media(200, 64, "aa")],
    )
    assert digest == expected


def config(**fields: Any) -> Any:
    shape = {"model_type": "qwen3", "vocab_size": 2048, "hidden_size": 128, "num_hidden_layers": 2, **fields}
    return SimpleNamespace(
        model_config=SimpleNamespace(model=fields.get("path", "a"), hf_config=SimpleNamespace(**shape)),
        cache_config=SimpleNamespace(enable_prefix_caching=False),
    )


def test_one_model_is_the_same_under_any_path_and_another_shape_is_another() -> None:
    assert digest_facts(config(path="/models/qwen")) == digest_facts(config(path="org/qwen"))
    assert digest_facts(config(num_hidden_layers=4)).model != digest_facts(config()).model


@pytest.mark.parametrize(("said", "stops"), [(None, ()), (7, (7,)), ([9, 7], (7, 9)), ([None, -1, "x", 2**32], ())])
def test_the_ids_that_end_a_message_are_the_models(said: Any, stops: tuple[int, ...]) -> None:
    assert digest_facts(config(eos_token_id=said)).stops == stops


def test_a_configuration_without_a_model_tells_nothing() -> None:
    assert digest_facts(SimpleNamespace()) == DigestFacts(None, (), True)


# --- what cannot be verified --------------------------------------------------------------------------
def unverifiable(digest: Digest) -> str | None:
    assert (digest.marks, digest.chunks, digest.key_id) == (b"", b"", "")
    return digest.unverifiable


def test_a_prompt_with_embeddings_in_it_is_unverifiable() -> None:
    request = fakes.Request(prompt=100)
    request.prompt_embeds = object()
    assert unverifiable(Hashing().of(request)) == "prompt_embeds"


def test_media_without_content_names_are_unverifiable_and_text_beside_them_is_not() -> None:
    facts = digest_facts(
        SimpleNamespace(
            model_config=SimpleNamespace(multimodal_config=SimpleNamespace(mm_processor_cache_gb=0)),
            cache_config=SimpleNamespace(enable_prefix_caching=False),
        )
    )
    hashing, request = Hashing(facts=facts), fakes.Request(prompt=100)
    request.mm_features = [
        SimpleNamespace(mm_position=SimpleNamespace(offset=0, length=64), identifier="r1-image-0", modality="image")
    ]
    assert unverifiable(hashing.of(request)) == "media"
    assert hashing.of(fakes.Request(prompt=100)).unverifiable is None


def test_what_are_no_token_ids_is_unverifiable() -> None:
    hashing, strange, short = Hashing(), fakes.Request(prompt=100), fakes.Request(prompt=100)
    strange._all_token_ids[50] = -1
    del short._all_token_ids[-10:]
    assert [unverifiable(hashing.of(request)) for request in (strange, short)] == ["strange_ids"] * 2


def test_an_engine_whose_requests_do_not_tell_it_all_still_has_its_requests_told() -> None:
    hashing, request = Hashing(), fakes.Request(prompt=100)
    del request.mm_features
    hashing.end(request)
    events = hashing.events()
    assert [type(event).__name__ for event in events] == ["Request", "Digest"]
    assert unverifiable(events[1]) == "unsupported"  # type: ignore[arg-type]
    assert hashing.watched.guard.errors == 0
    assert hashing.digests.waiting_tokens == 0


# --- what waits ---------------------------------------------------------------------------------------
def test_what_waits_is_bounded_in_tokens_and_what_is_too_much_is_said() -> None:
    hashing = Hashing(limit=1000)
    for _ in range(3):
        hashing.end(fakes.Request(prompt=400))
    assert hashing.digests.waiting_tokens <= 1000
    assert hashing.digests.pressing
    assert sorted(str(digest.unverifiable) for digest in hashing.work()) == ["None", "None", "dropped"]
    assert hashing.digests.waiting_tokens == 0
    assert not hashing.digests.pressing
    assert hashing.of(fakes.Request(prompt=400)).unverifiable is None


def test_many_short_requests_are_bounded_as_well() -> None:
    hashing = Hashing(limit=1000)
    for _ in range(100):
        hashing.end(fakes.Request(prompt=0), tokens=0)
    assert len([digest for digest in hashing.work() if digest.unverifiable == "dropped"]) > 80


def test_a_prompt_longer_than_all_that_may_wait_is_too_long() -> None:
    hashing, request = Hashing(), fakes.Request(prompt=10)
    request.num_prompt_tokens = 2**20 + 1
    assert unverifiable(hashing.of(request)) == "too_long"


def test_without_a_key_nothing_is_hashed_until_it_comes() -> None:
    secret = Secret()
    hashing = Hashing(secret=secret)
    hashing.end(fakes.Request(prompt=400))
    assert hashing.work() == []
    assert hashing.digests.waiting_tokens > 400
    secret.answered(SECRET)
    (digest,) = hashing.work()
    assert digest.key_id == Keys(SECRET.encode()).id


def test_where_nobody_gives_a_key_nothing_is_kept() -> None:
    secret = Secret()
    hashing = Hashing(secret=secret)
    hashing.end(fakes.Request(prompt=400))
    secret.answered(None)
    (digest,) = hashing.work()
    assert unverifiable(digest) == "no_key"
    assert hashing.digests.waiting_tokens == 0


def test_another_key_is_used_from_when_it_comes() -> None:
    hashing = Hashing(secret=Secret())
    names = []
    for key in ("a" * 64, "b" * 64):
        hashing.secret.answered(key)
        names.append(hashing.of(fakes.Request(prompt=400)).key_id)
    assert names == [Keys(("a" * 64).encode()).id, Keys(("b" * 64).encode()).id]


def test_a_request_is_gone_while_its_tokens_wait_and_they_go_when_they_are_hashed() -> None:
    hashing = Hashing()
    request = fakes.Request(prompt=400)
    view = request.all_token_ids
    gone, tokens_gone = weakref.ref(request), weakref.ref(view)
    hashing.end(request)
    del request, view
    gc.collect()
    assert gone() is None
    assert tokens_gone() is not None
    hashing.work()
    gc.collect()
    assert tokens_gone() is None


def test_switching_off_lets_go_of_what_waits() -> None:
    hashing = Hashing()
    hashing.end(fakes.Request(prompt=400))
    hashing.watched.events()
    hashing.watched.watch.forget()
    assert hashing.digests.waiting_tokens == 0
    assert hashing.work() == []


def test_a_long_prompt_is_hashed_with_a_pause_every_few_tokens() -> None:
    hashing = Hashing()
    hashing.of(fakes.Request(prompt=100_000))
    assert hashing.pauses > 90


def test_without_digests_there_are_none() -> None:
    watched = WatchedScheduler()
    assert not [event for event in watched.serve(fakes.Request()) if isinstance(event, Digest)]


# --- privacy ------------------------------------------------------------------------------------------
def test_no_token_id_stands_in_any_event_of_a_request() -> None:
    hashing, request = Hashing("kv_consumer"), fakes.Request(prompt=3000)
    ids = [1_000_003 + 7 * n for n in range(3000)]
    request._all_token_ids[:] = ids
    hashing.end(request, tokens=50, answer=held(3049))
    events = hashing.events()
    assert {type(event).__name__ for event in events} == {"Request", "Hold", "Digest"}
    sent = b"".join(msgspec.msgpack.encode(event) for event in events) + repr(events).encode()
    for number in ids:
        assert str(number).encode() not in sent
        assert number.to_bytes(3, "little") + b"\0" not in sent
        assert number.to_bytes(4, "big") not in sent
