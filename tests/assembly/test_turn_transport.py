"""What carried the transfers of one turn, and which counters say so."""

from __future__ import annotations

import msgspec
import pytest

from live.sysfs import Sysfs
from tests.assembly.node import READ_BYTES, handoff, two_nodes
from tests.assembly.run import Run
from tests.builders import MS, D, P, Pair, read
from tests.sysfs import Looks
from turnscope.model import Transfer
from turnscope.outputs import spans
from turnscope.semconv import Direction

LATE_RANK = read(Direction.HANDOFF, local="d1", remote=("p", "p1"), bytes=5, started_mono_ns=440 * MS, duration_ns=MS)


def one_turn(tree: Sysfs, *, pair: Pair | None = None, own: int = READ_BYTES, other: int = 0, card: int = 0) -> Run:
    """A turn whose handoff lies within one look."""
    pair = pair or two_nodes(Pair())
    run = Run().feed(pair.start())
    looks = Looks(tree)
    run.feed([looks.at(0)])
    events = [e for e in pair.turn("1", at_ms=100) if not isinstance(e.body, Transfer)]
    events.append(handoff(pair, 1, at_ms=700, lasted_ms=200, size=own))
    if other:
        events.append(handoff(pair, 2, at_ms=900, lasted_ms=100, size=other))
    run.feed(events)
    tree.efa(rdma_read_bytes=card)
    return run.feed([looks.at(2_000)]).wait()


def test_a_turns_transport_comes_with_the_counters_that_say_so(tree: Sysfs) -> None:
    tree.add_efa()
    turn = one_turn(tree, card=READ_BYTES + 1000).turns()["p1"]
    assert (turn.transport, turn.revision) == ("efa", 1)
    assert turn.transport_inferred_from == (
        "handoff efa: EFA counters moved by as much in the 2.0 s around its 134,217,728 B: "
        "NIXL 134,217,728 B, EFA 134,218,728 B, Ethernet 0 B"
    )


def test_the_turns_span_says_its_transport_and_how_it_was_inferred(tree: Sysfs) -> None:
    tree.add_efa()
    turn = one_turn(tree, card=READ_BYTES).turns()["p1"]
    (root, *_) = spans.encode([turn], version="0").resource_spans[0].scope_spans[0].spans
    found = {a.key: a.value.string_value for a in root.attributes}
    assert found["turnscope.turn.transport"] == "efa"
    assert found["turnscope.turn.transport_inferred_from"] == turn.transport_inferred_from


@pytest.mark.parametrize(("other", "card"), [(READ_BYTES, 2 * READ_BYTES), (0, 3 * READ_BYTES)])
def test_other_traffic_on_the_card_makes_it_an_upper_bound(tree: Sysfs, other: int, card: int) -> None:
    tree.add_efa()
    turn = one_turn(tree, other=other, card=card).turns()["p1"]
    assert turn.transport == "efa"
    assert str(turn.transport_inferred_from).endswith("upper bound, other traffic shared the card")


def test_nixls_bytes_alone_never_say_efa(tree: Sysfs) -> None:
    tree.add_efa()
    pair = Pair(*[msgspec.structs.replace(e, nixl_backends=("LIBFABRIC",)) for e in (P, D)])
    turn = one_turn(tree, pair=two_nodes(pair)).turns()["p1"]
    assert turn.transport == "unknown"


def test_a_turn_whose_bytes_nixl_did_not_tell_is_unknown_whatever_others_moved_beside_it(tree: Sysfs) -> None:
    tree.add_efa()
    turn = one_turn(tree, own=0, other=READ_BYTES, card=READ_BYTES).turns()["p1"]
    assert turn.transport == "unknown"
    assert turn.transport_inferred_from == "handoff unknown: NIXL did not tell its bytes"


def test_a_turn_on_a_node_that_nobody_looks_at_is_unknown() -> None:
    pair = Pair()
    turn = Run().feed([*pair.start(), *pair.turn("1")]).wait().turns()["p1"]
    assert turn.transport == "unknown"
    assert turn.transport_inferred_from == "handoff unknown: nobody looks at the cards of its engines' nodes"


def test_a_turn_that_moved_nothing_has_no_transport() -> None:
    pair = Pair()
    events = [e for e in pair.turn("1") if not isinstance(e.body, Transfer)]
    turn = Run().feed([*pair.start(), *events]).wait().turns()["p1"]
    assert (turn.transport, turn.transport_inferred_from) == (None, None)


def test_a_turn_that_is_counted_before_the_look_it_needs_is_stored_again_after_it(tree: Sysfs) -> None:
    tree.add_efa()
    pair = two_nodes(Pair())
    run = Run().feed(pair.start())
    looks = Looks(tree)
    run.feed([looks.at(0), *pair.turn("1")]).wait(8)
    first = run.turns()["p1"]
    assert (first.transport, first.revision) == ("unknown", 1)
    assert first.transport_inferred_from == "handoff unknown: the cards were not looked at since"
    tree.efa(rdma_read_bytes=200_000_000)
    run.feed([looks.at(run.now_ns / MS)]).wait(3)
    later = run.turns()["p1"]
    assert (later.transport, later.revision) == ("efa", 2)
    assert run.count("turns_total") == 1


def test_a_turn_from_before_the_first_look_is_unknown(tree: Sysfs) -> None:
    tree.add_efa()
    pair = two_nodes(Pair())
    run = Run().feed([*pair.start(), *pair.turn("1")])
    looks = Looks(tree)
    run.feed([looks.at(1_000), looks.at(3_000)]).wait()
    assert run.turns()["p1"].transport_inferred_from == "handoff unknown: the cards of node-a were not looked at then"


def test_a_transfer_across_a_time_in_which_nobody_looked_is_unknown(tree: Sysfs) -> None:
    tree.add_efa()
    pair = two_nodes(Pair())
    looks = Looks(tree)
    sent = [looks.at(0), looks.at(400)]
    again = Looks(tree)
    sent += [again.at(600), again.at(2_000)]
    run = Run().feed([*pair.start(), *sent, *pair.turn("1")]).wait()
    assert run.turns()["p1"].transport_inferred_from == "handoff unknown: the cards of node-a were not looked at then"


def test_an_answer_stays_when_its_looks_are_long_forgotten(tree: Sysfs) -> None:
    tree.add_efa()
    pair = two_nodes(Pair())
    looks = Looks(tree)
    run = Run().feed([*pair.start(), looks.at(0), *pair.turn("1")])
    tree.efa(rdma_read_bytes=63 * 2_097_152)
    run.feed([looks.at(2_000)]).wait()
    before = run.turns()["p1"]
    run.feed([looks.at(second * 1000) for second in range(12, 400, 2)])
    run.feed(pair.late_notice("p1", 401_000)).feed([pair.dw.say(LATE_RANK, 402_000)]).wait()
    after = run.turns()["p1"]
    assert (before.transport, after.transport) == ("efa", "efa")
    assert after.revision > before.revision
    assert after.transport_inferred_from == before.transport_inferred_from


def test_a_fetch_over_one_card_and_a_handoff_over_another_have_no_common_transport(tree: Sysfs) -> None:
    """The fetch is judged on P's node, the handoff on D's."""
    tree.add_efa()
    other = Sysfs(tree.net.parents[1] / "other")
    other.add_efa()
    other.add_ethernet()
    pair = two_nodes(Pair())
    run = Run().feed(pair.start())
    on_d, on_p = Looks(tree), Looks(other, node="node-p", hosts=("host-p",))
    run.feed([on_d.at(0), on_p.at(0), *pair.turn("1")])
    run.feed([on_d.at(2_000), on_p.at(2_000)])
    fetch, handed = 75 * 2_097_152, 200_000_000
    events = pair.turn("2", at_ms=2_500, prompt=1250, fetched=1199, given=pair.handle("1", 1199))
    other.efa(rdma_read_bytes=fetch)
    looks = [on_p.at(2_700), on_d.at(2_700)]
    tree.ethernet(rx_bytes=handed)
    looks += [on_p.at(4_000), on_d.at(4_000)]
    run.feed([*events, *looks]).wait()
    turn = run.turns()["p2"]
    assert turn.transport == "unknown"
    assert str(turn.transport_inferred_from).startswith("fetch efa: ")
    assert "; handoff tcp: " in str(turn.transport_inferred_from)
