"""A restart of D, from what the hooks tell of it to the alerts: one cause, one alert."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.alerts.cases import promtool
from tests.alerts.test_quiet import NAMES, quiet, series
from tests.assembly.run import Run
from tests.builders import D, P, Pair, Process, read
from turnscope.catalog import METRICS, Kind
from turnscope.semconv import Direction, TransferState

SESSIONS = 12
LOST = "TurnscopeHandshakesFail"
TIMES = ("12m", "14m", "24m", "40m", "75m")


def restart() -> Run:
    """Of a D that holds one turn of each session, whose users come back: P cannot read, and fails the request."""
    pair = Pair()
    events = pair.start()
    for n in range(SESSIONS):
        events += pair.turn(f"a{n}", at_ms=1000 * n, session=f"s{n}")
    started = msgspec.structs.replace(D, id="d-again", generation="d-2")
    again = Process("00000000000000b5", "engine", started)
    worker = Process("00000000000000b6", "worker", msgspec.structs.replace(started, rank=0))
    events += [again.started(20_000), worker.started(20_000)]
    later = Pair(P, started)
    later.p, later.pw, later.proxy, later.d, later.dw = pair.p, pair.pw, pair.proxy, again, worker
    for n in range(SESSIONS):
        at, given = 30_000 + 1000 * n, pair.handle(f"a{n}", 1199)
        body = read(
            Direction.REVERSE_FETCH,
            local=f"pb{n}",
            remote=("d", f"da{n}"),
            state=TransferState.HANDSHAKE_FAILED,
        )
        events.append(pair.pw.say(body, at + 100))
        turn = later.turn(
            f"b{n}",
            at_ms=at,
            prompt=1250,
            session=f"s{n}",
            given=given,
            prefill={"finish_reason": "error"},
            attempt={"outcome": "error", "status_code": 500},
        )
        events += [event for event in turn if event.engine is None or event.engine.id != "d-again"]
    return Run().feed(sorted(events, key=lambda event: event.mono_ns)).wait(120)


def scraped(run: Run) -> list[dict[str, str]]:
    """All there is at 0 for ten minutes, then what the restart counted."""
    found = {one["series"]: one for one in series("0+0x90", "G+0x90", "1+0x90")}
    for (name, *labels), value in run.counters().items():
        metric = METRICS[name]
        if metric.kind is Kind.COUNTER:
            given = {"job": "turnscope", "instance": "n1", **dict(zip(metric.label_names, labels, strict=True))}
            text = ",".join(f'{key}="{said}"' for key, said in given.items())
            found[f"{name}{{{text}}}"] = {"series": f"{name}{{{text}}}", "values": f"0+0x10 {value}+0x79"}
    return list(found.values())


def test_users_who_come_back_after_a_restart_of_d_fire_one_alert_and_wake_nobody(tmp_path: Path) -> None:
    run = restart()
    assert run.count("pair_reads_total", "prefill-0", "decode-0", "handshake_failed") == SESSIONS
    assert run.count("turns_ended_total", "prefill-0", "error") == SESSIONS
    tests = scraped(run)
    told = quiet(tests, TIMES)
    (case,) = told["tests"]
    others = [check for check in case["alert_rule_test"] if check["alertname"] != LOST]
    assert len({check["alertname"] for check in others}) == len(NAMES) - 1
    case["alert_rule_test"] = others
    done = promtool(told, tmp_path)
    assert done.returncode == 0, (done.stdout + done.stderr)[:3000]
    case["alert_rule_test"] = [{"eval_time": "14m", "alertname": LOST, "exp_alerts": []}]
    done = promtool(told, tmp_path)
    assert 'holder="decode-0"' in done.stdout + done.stderr
    assert done.returncode != 0
