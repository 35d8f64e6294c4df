"""Two looks at the cards to what they counted in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turnscope.measures.fabric_counters import first, increase

counters = st.dictionaries(
    st.sampled_from(["a/1", "b/1", "c/1"]),
    st.dictionaries(st.sampled_from(["rx_bytes", "tx_bytes", "rdma_read_bytes"]), st.integers(0, 2**63)),
)


@given(counters, counters)
def test_no_increase_is_ever_negative_and_none_is_made_up(before: dict, after: dict) -> None:  # type: ignore[type-arg]
    found = increase(before, after)
    assert all(value >= 0 for value in found.counters.values())
    both = {name for device in before.keys() & after.keys() for name in before[device].keys() & after[device].keys()}
    assert found.counters.keys() == both
    assert found.devices == len(after)


@given(counters)
def test_nothing_moved_is_0_for_every_counter_and_whole(same: dict) -> None:  # type: ignore[type-arg]
    found = increase(same, same)
    assert (set(found.counters.values()) <= {0}, found.partial) == (True, False)
    assert found == first(same)


def test_one_of_two_devices_began_anew() -> None:
    before = {"a/1": {"rx_bytes": 100}, "b/1": {"rx_bytes": 50}}
    found = increase(before, {"a/1": {"rx_bytes": 130}, "b/1": {"rx_bytes": 20}})
    assert (found.counters, found.partial) == ({"rx_bytes": 50}, True)
