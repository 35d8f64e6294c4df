"""Do handles and session ids make their way round: D, proxy, P?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from turnscope.measures.checks_settings import DECLINE_MARGIN_NS
from turnscope.measures.finding import Finding, Severity
from turnscope.model import SECOND_NS, SESSION_ADVICE, SystemStatus, plural
from turnscope.semconv import Reason, StuckCause

TOLERATED: Final = 0.1
"""Share of answers without a handle, or of requests without a session id, below which nothing is said."""


_UNSTICK: Final = {
    StuckCause.BIDIRECTIONAL_OFF: "bidirectional_off: set bidirectional_kv_xfer on the prefill engine as well.",
    StuckCause.HOST_BUFFER: "host_buffer: kv_buffer_device cpu and reverse transfer do not go together.",
    StuckCause.PREEMPTED: "preempted: a request with a handle was preempted; give the prefill engine more KV cache.",
    StuckCause.LOAD_FAILED: "load_failed: after a failed load kv_load_failure_policy 'recompute' parks the request.",
}


def _turns(status: SystemStatus, reason: Reason) -> int:
    return sum(engine.reasons.get(reason, 0) for engine in status.assembly.engines)


def streamed_without_handle(status: SystemStatus) -> Iterator[Finding]:
    """One finding per D whose streamed answers carry no handle, or some of them none, although the feature is on."""
    for engine in status.assembly.engines:
        missing = engine.streamed_answers - engine.streamed_handles
        if not engine.engine.bidirectional or not missing or TOLERATED * engine.streamed_answers > missing:
            continue
        every = not engine.streamed_handles
        plain = (
            f" Its {plural(engine.plain_handles, 'answer that was', 'answers that were')} not streamed did carry one."
            if engine.plain_handles
            else ""
        )
        yield Finding(
            severity=Severity.ERROR if every else Severity.WARNING,
            check="streamed_without_handle",
            where=engine.name,
            what=f"Reverse transfer is enabled, and of {plural(engine.streamed_answers, 'streamed answer')} "
            f"{'none carried a handle' if every else f'{missing} carried no handle'}: the next turn recomputes, "
            f"quietly.{plain if every else ''}",
            fix="vLLM up to 0.32 leaves kv_transfer_params out of streamed answers: use a version or a patch that "
            "sends it in the last chunk, or let the proxy ask D without streaming.",
        )


def handles_never_given(status: SystemStatus) -> Iterator[Finding]:
    """D's answers carry handles, later turns come without."""
    answered = sum(e.streamed_handles + e.plain_handles for e in status.assembly.engines)
    kept_back = _turns(status, Reason.HANDLE_NOT_GIVEN)
    given = sum(e.handles_in for e in status.assembly.engines if e.engine.role != "decode")
    if answered and kept_back and not given:
        yield Finding(
            severity=Severity.ERROR,
            check="handles_never_given",
            where="proxy",
            what=f"D's answers carried {plural(answered, 'handle')}, and the proxy gave none of them to a later turn "
            f"({plural(kept_back, 'turn')} could have used one).",
            fix="Use a proxy that keeps D's kv_transfer_params by session and sends them with the next turn's prefill "
            "request; stateless routers do not.",
        )


def expiry_dropped(status: SystemStatus) -> Iterator[Finding]:
    """D sends the expiry, P gets handles without it."""
    if not any(e.handles_out_with_expiry for e in status.assembly.engines if e.engine.role != "prefill"):
        return
    for engine in status.assembly.engines:
        if engine.engine.role != "decode" and engine.handles_in_without_expiry:
            yield Finding(
                severity=Severity.ERROR,
                check="expiry_dropped",
                where=engine.name,
                what=f"{engine.handles_in_without_expiry} of {plural(engine.handles_in, 'handle')} came without "
                "remote_blocks_expiry_time, "
                "which D had sent: P then cannot tell that a hold has ended and may read other users' blocks.",
                fix="Let the proxy or router pass kv_transfer_params on whole.",
            )


def given_too_late(status: SystemStatus) -> Iterator[Finding]:
    """The proxy keeps handles longer than D keeps the blocks."""
    late = _turns(status, Reason.DECLINED_EXPIRED)
    if late:
        ttls = [
            e.engine.hold_ttl_ns for e in status.assembly.engines if e.engine.role != "prefill" and e.engine.hold_ttl_ns
        ]
        limit = f" (here {(min(ttls) - DECLINE_MARGIN_NS) / SECOND_NS:g} s)" if ttls else ""
        yield Finding(
            severity=Severity.ERROR,
            check="given_too_late",
            where="proxy",
            what=f"{plural(late, 'turn')} brought a handle whose hold had ended or was within 5 s of it. With "
            "kv_load_failure_policy 'fail', the default, such a turn fails.",
            fix=f"Let the proxy forget a handle at D's decoder_kv_blocks_ttl less 5 s{limit}; its own default is 450 "
            "s. To reach longer pauses, raise decoder_kv_blocks_ttl first and the proxy's limit with it.",
        )


def no_session_ids(status: SystemStatus) -> Iterator[Finding]:
    """Without a session id no turn can be given the handle of the one before it."""
    total, without = status.assembly.attempts, status.assembly.attempts_without_session
    if without and without >= TOLERATED * total:
        yield Finding(
            severity=Severity.WARNING,
            check="no_session_ids",
            where="clients",
            what=f"{without} of {plural(total, 'request')} named no session: such cannot reuse anything and are shown "
            "as unattributed.",
            fix=SESSION_ADVICE,
        )


def spans_without_session(status: SystemStatus) -> Iterator[Finding]:
    """Spans of an agent that no page shows: nothing tells whose they are."""
    loose = status.assembly.spans_without_session
    if loose:
        yield Finding(
            severity=Severity.WARNING,
            check="spans_without_session",
            where="agents",
            what=f"{plural(loose, 'span')} of model calls, tools and agents within the last hour named no session, "
            "nor did what started them, their trace, or a turn that they called: no session shows them.",
            fix="Set gen_ai.conversation.id, or session.id, on the outermost span of a run, or as your instrumentation "
            "does it: docs/agents.md has a line for each.",
        )


def direct_requests(status: SystemStatus) -> Iterator[Finding]:
    """So many requests past the proxy that they are not warm-ups and health checks alone."""
    direct, total = status.assembly.direct_requests, status.assembly.attempts + status.assembly.direct_requests
    if direct and direct >= TOLERATED * total:
        yield Finding(
            severity=Severity.NOTE,
            check="direct_requests",
            where="engines",
            what=f"{direct} of {plural(total, 'request')} went straight to an engine of a pair: no proxy had them, "
            "and they named no session. They are taken for warm-ups and health checks, and not counted as turns.",
            fix="If clients' requests are among them, run the proxy that they come through with the hook (turnscope "
            f"run proxy.py ...). {SESSION_ADVICE}",
        )


def rejected_by_frontend(status: SystemStatus) -> Iterator[Finding]:
    """Requests that an engine's front end refused."""
    refused = _turns(status, Reason.REJECTED_BY_FRONTEND)
    if refused:
        yield Finding(
            severity=Severity.ERROR,
            check="rejected_by_frontend",
            where="engines' front end",
            what=f"{plural(refused, 'turn was', 'turns were')} refused with a 4xx status before they reached an "
            "engine.",
            fix="The answer's text says what it did not accept. If it is the conversation_id in the body, let clients "
            "send the header X-Session-ID instead.",
        )


def stuck(status: SystemStatus) -> Iterator[Finding]:
    """Turns that vanished from every gauge of the engine."""
    if not status.assembly.stuck_turns:
        return
    known = {cause: n for cause, n in status.assembly.stuck_causes.items() if cause != StuckCause.UNKNOWN}
    silent = status.assembly.stuck_turns - sum(known.values())
    listed = ", ".join(
        [*(f"{n} x {cause}" for cause, n in sorted(known.items())), *([f"{silent} x unknown"] * (silent > 0))]
    )
    yield Finding(
        severity=Severity.ERROR,
        check="stuck",
        where="engines",
        what=f"{plural(status.assembly.stuck_turns, 'turn is', 'turns are')} stuck ({listed}): an engine promised a "
        "load and queued no read, or no step was taken for longer than the limit. No answer will come, while the "
        "engine may say running = waiting = 0.",
        fix="Time out and retry them at the proxy. "
        + " ".join(_UNSTICK[StuckCause(cause)] for cause in sorted(known) if cause in _UNSTICK),
    )


def suspicious(status: SystemStatus) -> Iterator[Finding]:
    """Answers that may be wrong."""
    kinds = {kind: n for kind, n in status.assembly.suspicions.items() if n}
    if kinds:
        listed = ", ".join(f"{n} x {kind}" for kind, n in sorted(kinds.items()))
        yield Finding(
            severity=Severity.ERROR,
            check="suspicious",
            where="turns",
            what=f"There is evidence that answers were made from wrong KV: {listed}.",
            fix="Look the turns up in the explorer; see that handles are used once, in time, and only for a history "
            "that still begins as it did.",
        )
