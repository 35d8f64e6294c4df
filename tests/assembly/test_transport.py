"""The rules that tell what carried NIXL's bytes, each at its edge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnscope.assembly.nodes import Interval
from turnscope.assembly.transport import Traffic, card_bytes, figures, infer, total
from turnscope.semconv import Transport

NIXL = 1_000_000_000
EFA, TCP, LOCAL, UNKNOWN = Transport.EFA, Transport.TCP, Transport.LOCAL, Transport.UNKNOWN


def traffic(
    efa: int | None, ethernet: int | None, *, across: int = NIXL, within: int = 0, partial: bool = False
) -> Traffic:
    return Traffic(efa=efa, ethernet=ethernet, efa_partial=partial, across=across, within=within)


@pytest.mark.parametrize(
    ("found", "transport", "why"),
    [
        # Nothing to compare.
        (traffic(NIXL, NIXL, across=0), UNKNOWN, "did not tell its bytes"),
        # No EFA in sight.
        (traffic(None, NIXL), UNKNOWN, "no EFA counters"),
        (traffic(None, 0, across=0, within=NIXL), UNKNOWN, "no EFA counters"),
        # EFA moved as much.
        (traffic(900_000_000, 0), EFA, "EFA counters moved by as much"),
        (traffic(899_999_999, 0), UNKNOWN, "a part of it only"),
        (traffic(NIXL, None), EFA, "EFA counters moved by as much"),
        (traffic(10 * NIXL, 899_999_999), EFA, "EFA counters moved by as much"),
        (traffic(NIXL, 10 * NIXL), EFA, "EFA counters moved by as much"),
        (traffic(1_250_000_000, 900_000_000), EFA, "EFA counters moved by as much"),
        (traffic(1_250_000_001, 900_000_000), UNKNOWN, "may have gone another way"),
        (traffic(1_250_000_001, None), UNKNOWN, "may have gone another way"),
        (traffic(2_500_000_000, 0, across=0, within=NIXL), EFA, "EFA counters moved by as much"),
        (traffic(2_500_000_001, 0, across=0, within=NIXL), UNKNOWN, "may have gone another way"),
        (traffic(NIXL, 0, partial=True), EFA, "EFA counters moved by as much"),
        # EFA moved a part of it.
        (traffic(100_000_001, NIXL), UNKNOWN, "a part of it only"),
        (traffic(100_000_000, NIXL), TCP, "while Ethernet moved by as much"),
        # EFA stood still.
        (traffic(0, NIXL, partial=True), UNKNOWN, "began anew"),
        (traffic(0, None), UNKNOWN, "no Ethernet counters"),
        (traffic(0, None, across=0, within=NIXL), UNKNOWN, "no Ethernet counters"),
        (traffic(0, 900_000_000), TCP, "while Ethernet moved by as much"),
        (traffic(0, 899_999_999), UNKNOWN, "neither EFA nor Ethernet"),
        (traffic(0, 2**20, across=2**20), TCP, "while Ethernet moved by as much"),
        (traffic(0, 2**20, across=2**20 - 1), UNKNOWN, "too little"),
        (traffic(0, 899_999_999, across=0, within=NIXL), LOCAL, "both ends are on this node"),
        (traffic(0, 900_000_000, across=0, within=NIXL), UNKNOWN, "but Ethernet moved by as much"),
        # Part of it left the node: the cards are asked for that part.
        (traffic(NIXL, 0, within=10 * NIXL), EFA, "EFA counters moved by as much"),
        (traffic(0, NIXL, within=10 * NIXL), TCP, "while Ethernet moved by as much"),
    ],
)
def test_the_first_rule_that_fits_decides(found: Traffic, transport: Transport, why: str) -> None:
    got, reason = infer(found)
    assert got is transport
    assert why in reason


sizes = st.one_of(st.none(), st.integers(0, 2**50))


@given(st.integers(0, 2**50), st.integers(0, 2**50), sizes, sizes, st.booleans())
def test_no_transport_is_named_that_its_counters_do_not_bear_out(
    across: int, within: int, efa: int | None, ethernet: int | None, partial: bool
) -> None:
    found = traffic(efa, ethernet, across=across, within=within, partial=partial)
    transport, _ = infer(found)
    if transport is EFA:
        assert efa is not None
        assert efa >= 0.9 * found.carried > 0
    if transport in (TCP, LOCAL):
        assert efa is not None
        assert efa <= 0.1 * found.carried
        assert not partial
    if transport is TCP:
        assert ethernet is not None
        assert ethernet >= 0.9 * across > 0
    if transport is LOCAL:
        assert across == 0


def test_a_card_that_one_look_did_not_measure_is_measured_by_none_of_them_together() -> None:
    looks = [Interval(0, 10, 5, 7, False, across=3), Interval(10, 20, None, None, False, within=2)]
    assert total(looks) == traffic(None, None, across=3, within=2)
    assert total(looks[:1] * 2) == traffic(10, 14, across=6)
    assert total([]) == traffic(None, None, across=0)


def test_a_card_that_began_anew_in_one_look_is_measured_in_part() -> None:
    whole, partial = Interval(0, 10, 5, 7, False, across=3), Interval(10, 20, 5, 7, True, across=3)
    assert total([whole, partial]).efa_partial
    assert not total([whole, whole]).efa_partial


@pytest.mark.parametrize(
    ("counters", "size"),
    [
        ({"rdma_read_bytes": 5, "send_bytes": 2, "rx_bytes": 6}, 7),
        ({"rdma_read_bytes": 5, "rx_bytes": 4, "tx_bytes": 4}, 8),
        ({"rdma_read_wrs": 5, "rx_drops": 4}, None),
        ({"rdma_write_recv_bytes": 0}, 0),
        ({"rx_bytes": -5}, 0),
        ({}, None),
    ],
)
def test_verbs_and_wire_count_the_same_bytes_and_the_fuller_count_stands(
    counters: dict[str, int], size: int | None
) -> None:
    assert card_bytes(counters, counters.values()) == size


def test_what_was_not_measured_is_called_so() -> None:
    assert figures(traffic(None, 5, across=3, within=1)) == "NIXL 4 B, EFA not measured, Ethernet 5 B"
