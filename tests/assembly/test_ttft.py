"""The parts of a time to first token: they add up, and nothing is made up for what was not measured."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import MS
from turnscope.assembly.ttft import SLOW, Parts, Stamps, parts

PARTS = ("proxy", "queue", "reverse_fetch", "prefill", "handoff", "first_step", "unattributed")


def shown(found: Parts) -> dict[str, int]:
    """Those that are known, in milliseconds."""
    values = {name: getattr(found, name) for name in PARTS}
    return {name: value // MS for name, value in values.items() if value is not None}


MEASURED = st.none() | st.integers(-(2**40), 2**40)
STAMPS = st.builds(
    Stamps,
    ttft=st.integers(-5, 2**40),
    prefill_start=MEASURED,
    prefill_end=MEASURED,
    decode_start=MEASURED,
    retried=st.booleans(),
    prefill_queue=MEASURED,
    fetch=MEASURED,
    prefill=MEASURED,
    way=MEASURED,
    decode_queue=MEASURED,
    handoff=MEASURED,
    begun=st.booleans(),
    computes=st.booleans(),
    usual_step=st.none() | st.integers(0, 2**40),
)


@settings(max_examples=2000, deadline=None)
@given(STAMPS)
def test_the_parts_add_up_to_the_nanosecond_and_none_is_negative(stamps: Stamps) -> None:
    found = parts(stamps)
    values = [getattr(found, name) for name in PARTS]
    known = [value for value in values if value is not None]
    assert sum(known) == max(0, stamps.ttft)
    assert min(known) >= 0


def test_p_s_prefill_the_gap_d_s_queue_load_and_first_step_make_up_the_client_s_600_ms() -> None:
    found = parts(
        Stamps(
            ttft=600 * MS,
            prefill_start=0,
            prefill_end=400 * MS,
            decode_start=415 * MS,
            prefill_queue=0,
            prefill=400 * MS,
            decode_queue=100 * MS,
            handoff=60 * MS,
            begun=True,
        )
    )
    assert shown(found) == {
        "proxy": 15,
        "queue": 100,
        "prefill": 400,
        "handoff": 60,
        "first_step": 25,
        "unattributed": 0,
    }


def test_a_slow_first_step_is_unattributed_beyond_the_usual_and_never_becomes_transfer_time() -> None:
    stamps = Stamps(ttft=1000 * MS, decode_start=0, decode_queue=0, handoff=100 * MS, begun=True, usual_step=60 * MS)
    found = parts(stamps)
    assert shown(found) == {"proxy": 0, "queue": 0, "handoff": 100, "first_step": 60, "unattributed": 840}
    assert found.measured_step == 900 * MS
    nearly = parts(Stamps(ttft=SLOW * 60 * MS, decode_start=0, begun=True, usual_step=60 * MS))
    assert (nearly.first_step, nearly.unattributed) == (SLOW * 60 * MS, 0)
    unknown = parts(Stamps(ttft=900 * MS, decode_start=0, begun=True))
    assert (unknown.first_step, unknown.unattributed) == (900 * MS, 0)


def test_without_the_engines_word_only_the_proxy_s_own_time_is_known() -> None:
    found = parts(Stamps(ttft=600 * MS, prefill_start=5 * MS, prefill_end=400 * MS, decode_start=415 * MS))
    assert shown(found) == {"proxy": 20, "unattributed": 580}
    assert shown(parts(Stamps(ttft=600 * MS))) == {"unattributed": 600}


def test_engines_cannot_take_more_than_the_proxy_s_window_whatever_their_clocks_say() -> None:
    found = parts(
        Stamps(ttft=100 * MS, prefill_start=10 * MS, prefill_end=60 * MS, decode_start=70 * MS, prefill=900 * MS)
    )
    assert (found.prefill, found.proxy, found.unattributed) == (50 * MS, 20 * MS, 30 * MS)


def test_the_time_of_earlier_attempts_is_not_the_proxy_s() -> None:
    stamps = {"ttft": 900 * MS, "prefill_start": 500 * MS, "prefill_end": 700 * MS, "decode_start": 710 * MS}
    assert (parts(Stamps(**stamps)).proxy, parts(Stamps(**stamps, retried=True)).proxy) == (510 * MS, 10 * MS)
