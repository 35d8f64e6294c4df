"""Every finding fires on its cause and keeps quiet just before it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.measures.healthy import healthy_status
from turnscope.catalog.exporter import MISDIRECTED
from turnscope.measures.findings import CHECKS, findings
from turnscope.model import (
    ClockStatus,
    EmitterStatus,
    EngineStatus,
    FabricStatus,
    FabricWindow,
    HeldStatus,
    SteppedClock,
    SystemStatus,
)

Change = Callable[[SystemStatus], None]


def _source(status: SystemStatus, kind: str, engine: str | None = None) -> EmitterStatus:
    return next(s for s in status.assembly.emitters if s.emitter.kind == kind and engine in (None, s.engine))


def _engine(status: SystemStatus, name: str) -> EngineStatus:
    return next(e for e in status.assembly.engines if e.name == name)


def _emitter(kind: str, engine: str | None = None, **values: Any) -> Change:
    def change(status: SystemStatus) -> None:
        for name, value in values.items():
            setattr(_source(status, kind, engine), name, value)

    return change


def _engine_count(name: str, **values: Any) -> Change:
    def change(status: SystemStatus) -> None:
        for field, value in values.items():
            setattr(_engine(status, name), field, value)

    return change


def _setting(name: str, **values: Any) -> Change:
    def change(status: SystemStatus) -> None:
        engine = _engine(status, name)
        engine.engine = msgspec.structs.replace(engine.engine, **values)

    return change


def _assembly(**values: Any) -> Change:
    def change(status: SystemStatus) -> None:
        for field, value in values.items():
            setattr(status.assembly, field, value)

    return change


def _exporter(**values: Any) -> Change:
    def change(status: SystemStatus) -> None:
        for field, value in values.items():
            setattr(status.exporter, field, value)

    return change


def _without(kind: str | None = None, engine: str | None = None) -> Change:
    def change(status: SystemStatus) -> None:
        state = status.assembly
        state.emitters = [
            s for s in state.emitters if s.emitter.kind != kind and (engine is None or s.engine != engine)
        ]
        state.engines = [e for e in state.engines if e.name != engine and kind != "engine"]

    return change


def _another(name: str, asked: str | None) -> Change:
    """One more prefill engine, known by ``name``, that was given the name ``asked``."""

    def change(status: SystemStatus) -> None:
        first = _engine(status, "prefill-0")
        engine = msgspec.structs.replace(first.engine, id="another", name=asked)
        status.assembly.engines.append(msgspec.structs.replace(first, name=name, engine=engine))

    return change


def _held(name: str, kind: str, **values: Any) -> Change:
    return _engine_count(name, held={kind: HeldStatus(**values)})


def _skew(skew_s: float, error_s: float) -> Change:
    clock = ClockStatus(host="host-p", other="host-d", skew_s=skew_s, error_s=error_s, seen=9)
    return _assembly(clocks=[clock])


def _version(version: str) -> Change:
    def change(status: SystemStatus) -> None:
        source = _source(status, "proxy")
        source.emitter = msgspec.structs.replace(source.emitter, version=version)

    return change


def _replay(*kinds: str, age_s: float) -> Change:
    """What ``turnscope replay`` sent of these processes a while ago."""

    def change(status: SystemStatus) -> None:
        for source in status.assembly.emitters:
            if source.emitter.kind in kinds:
                source.emitter = msgspec.structs.replace(source.emitter, replayed=True, version="0.0.1")
                source.silent_s, source.clock_offset_s = 400.0, age_s

    return change


def _all(*changes: Change) -> Change:
    def change(status: SystemStatus) -> None:
        for one in changes:
            one(status)

    return change


def _window(silent_s: float = 1.0, collector: str = "", **values: Any) -> Change:
    """A node with one window of transfers."""
    window = FabricWindow(
        **{
            "transport": "efa",
            "inferred_from": "",
            "ended_s": 5.0,
            "seconds": 60.0,
            "transfers": 80,
            "across_bytes": 0,
            "within_bytes": 100_000_000,
            **values,
        }
    )

    def change(status: SystemStatus) -> None:
        node = FabricStatus(
            node="node-a",
            collector=collector,
            silent_s=silent_s,
            efa_devices=1,
            ethernet_devices=1,
            windows=[window],
        )
        status.assembly.fabric = [node]

    return change


BOTH_OFF = _all(_setting("prefill-0", bidirectional=False), _setting("decode-0", bidirectional=False))
D_TALKS = _engine_count("decode-0", handles_out=20, handles_out_with_expiry=20)

# check, what fires it, who must be named, what nearly fires it
CASES: list[tuple[str, Change, str, Change]] = [
    ("no_engine", _without("engine"), "engines", _without(engine="decode-0")),
    ("no_proxy", _without("proxy"), "proxy", _without("engine")),
    ("one_side_missing", _without(engine="decode-0"), "decode engines", _setting("decode-0", role="both")),
    ("one_side_missing", _without(engine="prefill-0"), "prefill engines", _setting("prefill-0", role="both")),
    (
        "switched_off",
        _emitter("engine", "decode-0", state="switched_off", message="5 errors in a row"),
        "decode-0 (engine), process 12 on host-d",
        _emitter("engine", "decode-0", state="stopping"),
    ),
    (
        "silent",
        _emitter("engine", "prefill-0", silent_s=15.1),
        "prefill-0 (engine), process 11 on host-p",
        _emitter("engine", "prefill-0", silent_s=15.0),
    ),
    (
        "silent",
        _emitter("proxy", silent_s=91.0, heartbeat_s=30.0),
        "proxy, process 13 on host-x",
        _emitter("proxy", silent_s=90.0, heartbeat_s=30.0),
    ),
    (
        "silent",
        _emitter("proxy", silent_s=60.0),
        "proxy, process 13 on host-x",
        _emitter("proxy", silent_s=60.0, state="stopping"),
    ),
    (
        "silent",
        _emitter("engine", "decode-0", silent_s=60.0),
        "decode-0",
        _emitter("engine", "decode-0", silent_s=60.0, generation="old"),
    ),
    ("names_shared", _another("prefill-other", "decode-0"), "prefill-other", _another("prefill-1", "decode-1")),
    ("names_shared", _another("prefill-other", None), "prefill-other", _another("prefill-1", None)),
    ("lost_events", _emitter("proxy", dropped=3, missing=3), "proxy", _emitter("proxy", received=900)),
    ("lost_events", _emitter("proxy", missing=1), "proxy", _emitter("proxy", missing=0)),
    ("hook_errors", _emitter("engine", "prefill-0", errors=1), "prefill-0", _emitter("engine", "prefill-0", errors=0)),
    ("versions_differ", _version("0.0.9"), "turnscope", _version("")),
    (
        "clock_off",
        _emitter("engine", "decode-0", clock_offset_s=-2.1),
        "host-d",
        _emitter("proxy", clock_offset_s=-2.0),
    ),
    (
        "clock_off",
        _emitter("proxy", clock_offset_s=600.0),
        "host-x",
        _emitter("proxy", clock_offset_s=600.1),
    ),
    (
        "replayed",
        _emitter("proxy", clock_offset_s=600.1, silent_s=900.0),
        "host-x",
        _emitter("proxy", clock_offset_s=600.0),
    ),
    ("replayed", _replay("proxy", age_s=20.0), "host-x", _emitter("proxy", clock_offset_s=20.0)),
    (
        "silent",
        _emitter("proxy", silent_s=900.0, clock_offset_s=600.0),
        "proxy",
        _emitter("proxy", silent_s=900.0, clock_offset_s=600.1),
    ),
    (
        "no_connector",
        _setting("prefill-0", connector=None),
        "prefill-0",
        _all(_setting("prefill-0", connector=None), _setting("decode-0", connector=None)),
    ),
    (
        "no_connector",
        _setting("decode-0", connector="LMCacheConnectorV1"),
        "decode-0",
        _setting("decode-0", connector="MultiConnector"),
    ),
    (
        "bidirectional_off",
        _setting("prefill-0", bidirectional=False),
        "prefill-0",
        _setting("prefill-0", bidirectional=None),
    ),
    (
        "bidirectional_off",
        _setting("decode-0", bidirectional=False),
        "decode-0",
        _setting("decode-0", bidirectional=None),
    ),
    ("bidirectional_off", BOTH_OFF, "all engines", _all(BOTH_OFF, _without(engine="decode-0"))),
    ("block_sizes_differ", _setting("decode-0", block_size=64), "engines", _setting("decode-0", block_size=None)),
    (
        "vllm_versions_differ",
        _setting("decode-0", vllm_version="0.28.0"),
        "engines",
        _setting("decode-0", role="aggregated", vllm_version="0.28.0"),
    ),
    (
        "threshold_odd",
        _setting("prefill-0", recompute_threshold=0),
        "prefill-0",
        _setting("prefill-0", recompute_threshold=1),
    ),
    (
        "threshold_odd",
        _engine_count("prefill-0", handles_in=10, reasons={"below_threshold": 6}),
        "prefill-0",
        _engine_count("prefill-0", handles_in=10, reasons={"below_threshold": 5}),
    ),
    (
        "prefix_caching_off",
        _setting("prefill-0", prefix_caching=False),
        "prefill-0",
        _setting("decode-0", prefix_caching=False),
    ),
    (
        "hold_shorter_than_margin",
        _setting("decode-0", hold_ttl_ns=5_000_000_000),
        "decode-0",
        _setting("decode-0", hold_ttl_ns=5_000_000_001),
    ),
    ("proxy_keeps_too_long", _exporter(proxy_ttl_s=476.0), "decode-0", _exporter(proxy_ttl_s=475.0)),
    (
        "streamed_without_handle",
        _engine_count("decode-0", streamed_answers=1, streamed_handles=0),
        "decode-0",
        _engine_count("decode-0", streamed_answers=0, streamed_handles=0),
    ),
    (
        "streamed_without_handle",
        _engine_count("decode-0", streamed_answers=40, streamed_handles=36),
        "decode-0",
        _engine_count("decode-0", streamed_answers=40, streamed_handles=37),
    ),
    (
        "handles_never_given",
        _all(
            _engine_count("decode-0", plain_handles=9),
            _engine_count("prefill-0", handles_in=0, reasons={"handle_not_given": 4}),
        ),
        "proxy",
        _all(
            _engine_count("decode-0", plain_handles=9),
            _engine_count("prefill-0", handles_in=1, reasons={"handle_not_given": 4}),
        ),
    ),
    (
        "expiry_dropped",
        _all(D_TALKS, _engine_count("prefill-0", handles_in_without_expiry=1)),
        "prefill-0",
        _all(
            _engine_count("decode-0", handles_out_with_expiry=0),
            _engine_count("prefill-0", handles_in_without_expiry=1),
        ),
    ),
    (
        "given_too_late",
        _engine_count("prefill-0", reasons={"declined_expired": 1}),
        "proxy",
        _engine_count("prefill-0", reasons={"proxy_entry_expired": 1}),
    ),
    (
        "no_session_ids",
        _assembly(attempts=100, attempts_without_session=10),
        "clients",
        _assembly(attempts=100, attempts_without_session=9),
    ),
    (
        "direct_requests",
        _assembly(attempts=90, direct_requests=10),
        "engines",
        _assembly(attempts=91, direct_requests=10),
    ),
    (
        "rejected_by_frontend",
        _engine_count("prefill-0", reasons={"rejected_by_frontend": 10}),
        "engines' front end",
        _engine_count("prefill-0", reasons={"first_turn": 10}),
    ),
    ("stuck", _assembly(stuck_turns=1), "engines", _assembly(stuck_turns=0)),
    (
        "pair_fails",
        _engine_count("prefill-0", failing={"decode-0": 3}),
        "prefill-0 reading from decode-0",
        _engine_count("prefill-0", failing={"decode-0": 2, "decode-1": 2}),
    ),
    (
        "unexplained",
        _assembly(explained={"both yes": 98, "both no": 2, "engines no": 50}),
        "turns",
        _assembly(explained={"both yes": 99, "both no": 1, "engines no": 50}),
    ),
    ("suspicious", _assembly(suspicions={"kv_mismatch": 1}), "turns", _assembly(suspicions={"kv_mismatch": 0})),
    (
        "digest_keys_differ",
        _all(_emitter("engine", "prefill-0", digest_key_id="a"), _emitter("engine", "decode-0", digest_key_id="b")),
        "engines",
        _all(_emitter("engine", "prefill-0", digest_key_id="a"), _emitter("engine", "decode-0", digest_key_id="a")),
    ),
    (
        "digest_keys_differ",
        _all(
            _emitter("engine", "prefill-0", digest_key_id="a"),
            _emitter("engine", "decode-0", digest_key_id="b"),
            _emitter("proxy", digest_key_id="a"),
        ),
        "engines",
        _all(_emitter("engine", "prefill-0", digest_key_id="a"), _emitter("proxy", digest_key_id="b")),
    ),
    (
        "prefix_cache_spoiled",
        _engine_count("prefill-0", spoiled_prefixes=1),
        "prefill-0",
        _engine_count("prefill-0", spoiled_prefixes=0),
    ),
    (
        "digests_unlike",
        _assembly(continuity={"digests": 80, "first_turn": 10, "unverifiable": 10}),
        "turns",
        _assembly(continuity={"digests": 81, "first_turn": 10, "unverifiable": 9, "lengths": 1}),
    ),
    (
        "read_after_release",
        _held("prefill-0", "lease", ended=42, read_late=8, latest_read_s=52.0),
        "prefill-0",
        _held("prefill-0", "lease", ended=42, read_late=0),
    ),
    (
        "read_after_release",
        _held("decode-0", "hold", ended=10, read_late=1, latest_read_s=61.0),
        "decode-0",
        _held("decode-0", "hold", ended=10),
    ),
    (
        "retention_pressure",
        _all(_setting("decode-0", num_blocks=1000), _held("decode-0", "hold", requests=6, blocks=800, oldest_s=25.0)),
        "decode-0",
        _all(_setting("decode-0", num_blocks=1000), _held("decode-0", "hold", requests=6, blocks=799, oldest_s=25.0)),
    ),
    ("clocks_apart", _skew(0.2, 0.09), "hosts host-p and host-d", _skew(0.2, 0.1)),
    ("clocks_apart", _skew(-7.0, 0.02), "hosts host-p and host-d", _skew(-0.1, 0.0)),
    (
        "clock_stepped",
        _assembly(stepped=[SteppedClock(host="host-p", steps=1, last_s=-3600.0)]),
        "host host-p",
        _assembly(stepped=[]),
    ),
    ("journal_fails", _exporter(journal_error="no space left"), "sidecar's journal", _exporter(journal_error=None)),
    (
        "journal_damaged",
        _exporter(journal_damage="7 bytes of the journal in /data/journal could not be read"),
        "sidecar's journal",
        _exporter(journal_damage=None),
    ),
    ("store_fails", _exporter(store_error="not writable"), "sidecar's store", _exporter(store_error=None)),
    (
        "traces_fail",
        _exporter(traces_error="unavailable", traces_endpoint="http://tempo:4317"),
        "http://tempo:4317",
        _exporter(traces_error=None, traces_endpoint="http://tempo:4317"),
    ),
    ("spans_without_session", _assembly(spans_without_session=1), "agents", _assembly(spans_without_session=0)),
    ("requests_too_large", _exporter(too_large_requests=1), "sidecar's receiver", _exporter(too_large_requests=0)),
    *(
        ("misdirected", _exporter(misdirected={what: 1}), "127.0.0.1:4318", _exporter(misdirected={}))
        for what in MISDIRECTED
    ),
    ("spans_rejected", _exporter(rejected_spans=1), "sidecar's receiver", _exporter(rejected_spans=0, spans=1)),
    (
        "spans_not_passed_on",
        _exporter(passing_on_error="unavailable", passing_on_endpoint="http://tempo:4317"),
        "http://tempo:4317",
        _exporter(passing_on_error=None, passing_on_endpoint="http://tempo:4317"),
    ),
    ("records_rejected", _exporter(rejected_records=1), "sidecar's receiver", _exporter(rejected_records=0)),
    (
        "not_scraped",
        _exporter(last_scrape_s=None, uptime_s=121.0),
        "sidecar's /metrics",
        _exporter(last_scrape_s=None, uptime_s=119.0),
    ),
    ("not_scraped", _exporter(last_scrape_s=121.0), "sidecar's /metrics", _exporter(last_scrape_s=120.0)),
    ("replaying", _exporter(replaying=True), "sidecar", _exporter(replaying=False)),
    ("fell_back_to_tcp", _window(transport="tcp"), "node-a", _window(transport="unknown")),
    (
        "same_host_slow_read_path",
        _window(transport="local", bytes_per_second=1.99e9),
        "node-a",
        _window(transport="local", bytes_per_second=2e9),
    ),
    (
        "same_host_slow_read_path",
        _window(transport="local", bytes_per_second=0.5e9),
        "node-a",
        _window(transport="local", bytes_per_second=0.5e9, within_bytes=99_999_999),
    ),
    ("cards_not_looked_at", _window(silent_s=60.1), "node-a", _window(silent_s=60.0)),
    (
        "no_handoffs",
        _engine_count("decode-0", without_handoff=10, prefills_meanwhile=9),
        "decode-0",
        _engine_count("decode-0", without_handoff=9, prefills_meanwhile=9),
    ),
    (
        "no_handoffs",
        _engine_count("decode-0", without_handoff=20, prefills_meanwhile=10),
        "decode-0",
        _engine_count("decode-0", without_handoff=20, prefills_meanwhile=9),
    ),
    (
        "child_not_measured",
        _setting("decode-0", connector="MultiConnector", connectors=("NixlConnector", "MooncakeConnector")),
        "decode-0",
        _setting("decode-0", connector="MultiConnector", connectors=("NixlConnector", "NixlPushConnector")),
    ),
]


def test_a_healthy_pair_has_no_findings() -> None:
    assert findings(healthy_status()) == []


@pytest.mark.parametrize(("check", "fires", "where", "nearly"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_a_finding_fires_on_its_cause_and_not_just_before_it(
    check: str, fires: Change, where: str, nearly: Change
) -> None:
    status = healthy_status()
    fires(status)
    found = [f for f in findings(status) if f.check == check]
    assert len(found) == 1
    assert where in found[0].where
    assert found[0].what
    assert found[0].fix
    status = healthy_status()
    nearly(status)
    assert check not in {f.check for f in findings(status)}


def test_of_a_recording_however_young_neither_silence_nor_clocks_nor_versions_are_judged() -> None:
    status = healthy_status()
    _replay("engine", "proxy", age_s=90.0)(status)
    _window(silent_s=400.0, collector=_source(status, "engine").emitter.id)(status)
    (found,) = findings(status)
    assert (found.check, found.where) == ("replayed", "host-d, host-p, host-x")
    assert "a recording, 2 minutes old when it came" in found.what


def test_a_recording_that_a_collector_sends_is_judged_by_host() -> None:
    status = healthy_status()
    for source, age_s in zip(status.assembly.emitters, (700.0, 300.0, 0.2), strict=True):
        source.emitter = msgspec.structs.replace(source.emitter, host="one")
        source.silent_s, source.clock_offset_s = 400.0, age_s
    assert [(f.check, f.where) for f in findings(status)] == [
        ("silent", "proxy, process 13 on one"),
        ("replayed", "one"),
    ]


def test_every_check_has_a_case_and_is_named_after_its_function() -> None:
    assert {check.__name__ for check in CHECKS} == {case[0] for case in CASES}


def test_every_function_that_looks_like_a_check_is_run() -> None:
    modules = {inspect.getmodule(check) for check in CHECKS}
    written = {
        f
        for module in modules
        for name, f in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_") and f.__module__ == module.__name__  # type: ignore[union-attr]
    }
    assert written == set(CHECKS)


def test_the_lines_to_start_an_engine_with_name_this_sidecars_own_address() -> None:
    status = healthy_status()
    _all(_without("engine"), _exporter(otlp_address="10.0.0.7:14317"))(status)
    (found,) = [f for f in findings(status) if f.check == "no_engine"]
    assert "TURNSCOPE_ENDPOINT=grpc://10.0.0.7:14317 vllm serve" in found.fix


def test_spans_of_agents_alone_may_be_meant_so_and_a_proxy_without_engines_is_not() -> None:
    status = healthy_status()
    _all(_without("engine"), _exporter(spans=8))(status)
    assert [f.severity for f in findings(status) if f.check == "no_engine"] == ["error"]
    _without("proxy")(status)
    assert [f.severity for f in findings(status) if f.check == "no_engine"] == ["note"]


def test_the_worst_comes_first() -> None:
    status = healthy_status()
    _all(_exporter(replaying=True), _emitter("proxy", missing=1), _assembly(stuck_turns=2))(status)
    assert [f.severity.value for f in findings(status)] == ["error", "warning", "note"]


def test_forty_streamed_answers_without_a_handle_are_one_finding_for_each_decode_engine() -> None:
    status = healthy_status()
    first = _engine(status, "decode-0")
    first.streamed_answers, first.streamed_handles = 40, 0
    status.assembly.engines.append(msgspec.structs.replace(first, name="decode-1"))
    found = [f for f in findings(status) if f.check == "streamed_without_handle"]
    assert [f.where for f in found] == ["decode-0", "decode-1"]
    assert all("of 40 streamed answers none" in f.what for f in found)


def test_stuck_turns_are_told_by_cause_each_with_what_to_do() -> None:
    status = healthy_status()
    _assembly(stuck_turns=4, stuck_causes={"host_buffer": 1, "bidirectional_off": 2, "unknown": 1})(status)
    (found,) = findings(status)
    assert "4 turns are stuck (2 x bidirectional_off, 1 x host_buffer, 1 x unknown)" in found.what
    assert "bidirectional_kv_xfer" in found.fix
    assert "preempted" not in found.fix


def test_a_dead_engine_with_its_workers_is_one_finding() -> None:
    status = healthy_status()
    engine = _source(status, "engine", "prefill-0")
    engine.silent_s = 40.0
    status.assembly.emitters += [
        msgspec.structs.replace(
            engine, emitter=msgspec.structs.replace(engine.emitter, id=f"w{rank}", kind="worker"), rank=rank
        )
        for rank in range(2)
    ]
    (found,) = [f for f in findings(status) if f.check == "silent"]
    assert found.where.startswith("prefill-0 (engine)")
    assert "2 more of its processes" in found.what


def test_some_streamed_answers_without_a_handle_are_a_warning_with_their_number() -> None:
    status = healthy_status()
    _engine_count("decode-0", streamed_answers=42, streamed_handles=34)(status)
    (found,) = findings(status)
    assert found.severity.value == "warning"
    assert "of 42 streamed answers 8 carried no handle" in found.what


def test_the_three_causes_of_no_reuse_are_told_apart() -> None:
    missing_field, off_on_d, no_session = (healthy_status() for _ in range(3))
    _engine_count("decode-0", streamed_answers=5, streamed_handles=0)(missing_field)
    _all(_setting("decode-0", bidirectional=False), _engine_count("decode-0", streamed_answers=5, streamed_handles=0))(
        off_on_d
    )
    _assembly(attempts=5, attempts_without_session=5)(no_session)
    found = [[f.check for f in findings(s)] for s in (missing_field, off_on_d, no_session)]
    assert found == [["streamed_without_handle"], ["bidirectional_off"], ["no_session_ids"]]


def test_a_late_lease_is_told_with_its_rate_its_limit_and_what_to_raise_it_above() -> None:
    status = healthy_status()
    _all(
        _setting("prefill-0", lease_ns=30_000_000_000),
        _held("prefill-0", "lease", ended=42, read_late=8, latest_read_s=52.0),
    )(status)
    (found,) = findings(status)
    assert "8 of 42 leases (19%) were given up after 30 s and read all the same, the latest at +52 s" in found.what
    assert "Raise kv_lease_duration here above 52 s" in found.fix


def test_retention_pressure_names_what_is_free_and_the_time_to_live() -> None:
    status = healthy_status()
    _all(_setting("decode-0", num_blocks=1000), _held("decode-0", "hold", requests=6, blocks=900, oldest_s=25.0))(
        status
    )
    (found,) = findings(status)
    assert "900 of its 1000 KV blocks (90%) are held for 6 finished requests, the oldest for 25 s" in found.what
    assert "more than the other 100 waits" in found.what
    assert "ends after 480 s" in found.what
    assert "decoder_kv_blocks_ttl" in found.fix


def test_a_skew_says_which_way_and_how_sure() -> None:
    ahead, behind = healthy_status(), healthy_status()
    _skew(7.0, 0.02)(ahead)
    _skew(-7.0, 0.02)(behind)
    (one,), (other,) = findings(ahead), findings(behind)
    assert "7.000 s (+-0.020) ahead" in one.what
    assert "7.000 s (+-0.020) behind" in other.what
