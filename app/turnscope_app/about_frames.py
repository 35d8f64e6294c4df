"""The page about the data, without Streamlit: coverage, and the processes that they are from."""

from __future__ import annotations

from typing import Final

import pandas as pd

from turnscope.semconv import Role
from turnscope.store.totals import Counts, Totals
from turnscope_app import text, words
from turnscope_app.cards import Card
from turnscope_app.columns import Column, Kind, Row

_ROLES: Final = {
    Role.PREFILL: "Prefill engine",
    Role.DECODE: "Decode engine",
    Role.BOTH: "Prefill and decode engine",
    Role.AGGREGATED: "Engine",
}
_STATES: Final = {"started": "", "stopping": "stopped", "switched_off": "switched off"}
_SILENT_NS: Final = 600_000_000_000
"""A process that was heard so long before the last one tells nothing of what came after."""


def _part(row: Row) -> str:
    if row["kind"] == "proxy":
        return "Proxy"
    part = _ROLES.get(row["role"], "Engine")
    return f"{part}'s worker" if row["kind"] == "worker" else part


def _state(row: Row) -> str:
    found = [_STATES.get(row["state"], row["state"] or "")]
    if row["state"] == "switched_off" and row["message"]:
        found = [f"switched off: {row['message']}"]
    if row["replayed"]:
        found.append("a recording")
    return text.harmless(", ".join(filter(None, found)) or "reports")


def _skew(row: Row) -> str:
    return ", ".join(
        f"{text.duration(skew['skew_ns'])} (± {text.duration(skew['error_ns'])}) to {text.harmless(skew['host'], 40)}"
        for skew in row["skews"] or []
    )


PROCESSES: Final = (
    Column("part", "What", "Which part of the serving system this process is.", value=_part, width=190),
    Column(
        "engine",
        "Name",
        "The engine's bounded name, as in metrics.",
        value=lambda row: text.harmless(row["engine"] or ""),
    ),
    Column("state", "State", "Whether its hook reports.", value=_state),
    Column("host", "Host", "Where it ran.", value=lambda row: text.harmless(row["host"] or "")),
    Column("started_ns", "First heard", "When its first event came.", Kind.TIME),
    Column("ended_ns", "Last heard", "When its newest event came, as of the last row in the store.", Kind.TIME),
    Column(
        "version",
        "turnscope",
        "The version of the hook in it.",
        value=lambda row: text.harmless(row["version"] or ""),
    ),
    Column("vllm_version", "vLLM", "The engine's version.", value=lambda row: text.harmless(row["vllm_version"] or "")),
    Column("model", "Model", "That it serves.", value=lambda row: text.harmless(row["model"] or "")),
    Column(
        "connector",
        "Connector",
        "How it moves memory between servers (kv_connector).",
        value=lambda row: text.harmless(row["connector"] or ""),
    ),
    Column("received", "Events received", "Of this process.", Kind.COUNT),
    Column("dropped", "Dropped there", "Events that its hook had to drop, by its own account.", Kind.COUNT),
    Column("missing", "Lost on the way", "Events that were sent and never came, by gaps in their numbers.", Kind.COUNT),
    Column("errors", "Hook errors", "What the hook could not read, by its own account.", Kind.COUNT),
    Column(
        "clock_offset_ns",
        "Clock behind, at most",
        "Least time from an event to its arrival: the way here, plus how far its clock is behind the sidecar's.",
        Kind.MS,
    ),
    Column(
        "skew",
        "Clock against other hosts",
        "Their clocks less this one's, where requests between them tell.",
        value=_skew,
    ),
)


def cards(totals: Totals, counts: Counts, processes: list[Row]) -> list[Card]:
    """What the data are made of, and what is missing."""
    heard = {_part(row) for row in processes}
    received = sum(row["received"] for row in processes)
    gone = sum(row["dropped"] + row["missing"] for row in processes)
    widest = max((abs(skew["skew_ns"]) for row in processes for skew in row["skews"] or []), default=None)
    unknown = counts.by_reason.get("unknown", 0)
    kept = "" if processes else " Not kept in this store: it was imported, or written by an older turnscope."
    return [
        Card(
            "Reason unknown",
            text.share(unknown, totals.turns) if unknown else "0 %",
            f"Turns of which there is not enough evidence to say why no more was fetched back: {unknown:,} of "
            f"{totals.turns:,}.",
        ),
        Card(
            "Hooks seen",
            text.count(len(processes)) if processes else words.NOT_MEASURED,
            f"Processes that reported: {', '.join(sorted(heard)) or 'none'}.{kept}",
        ),
        Card(
            "Events lost",
            text.share(gone, received + gone) if gone else ("0 %" if processes else words.NOT_MEASURED),
            f"Dropped by a hook, or lost on the way: {gone:,} of {received + gone:,}.{kept}",
        ),
        Card(
            "Clocks apart, at most",
            text.duration(widest) if widest is not None else words.NOT_MEASURED,
            "Between two hosts, where requests between them tell. Durations are never made of two hosts' clocks, "
            f"pauses between turns are by the proxy's.{kept}",
        ),
        Card(
            "Facts that came late",
            text.share(totals.late_turns, totals.turns) if totals.late_turns else "0 %",
            "Turns that were told more of after they had been counted: the store has it, metrics do not.",
        ),
    ]


def versions(processes: list[Row]) -> list[str]:
    """What runs in which version, a sentence each; two versions of one thing are worth a look."""
    found = []
    for what, name in (("vLLM", "vllm_version"), ("turnscope's hook", "version")):
        seen = sorted({text.harmless(row[name], 40) for row in processes if row[name]})
        if seen:
            more = " Several at once: figures may differ between them." if len(seen) > 1 else ""
            found.append(f"{what} {', '.join(seen)}.{more}")
    return found


def silent(processes: list[Row]) -> list[str]:
    """Processes that had stopped to report while others went on, with their names."""
    last = max((row["ended_ns"] for row in processes), default=0)
    return [
        " ".join(filter(None, (_part(row), text.harmless(row["engine"] or ""))))
        for row in processes
        if row["state"] == "started" and not row["replayed"] and last - row["ended_ns"] > _SILENT_NS
    ]


def coverage(totals: Totals, counts: Counts) -> pd.DataFrame:
    """How many turns have each kind of measurement, and why the others lack it. Turns that never came to a decode
    engine are no lack of its reports."""
    early = totals.undecoded_turns
    came = totals.turns - early
    before = f" {text.turns(early)} ended before one was reached, and {'is' if early == 1 else 'are'} not counted here."
    measured = {
        "Reported by a server that reads prompts (prefill engine)": (
            totals.prefill_turns,
            "The hook has to be on each of them.",
        ),
        "Reported by the proxy": (
            totals.attempt_turns,
            "They did not pass a proxy with the hook (turnscope run, or the middleware): warm-up requests, for one.",
        ),
        "Prompt tokens told apart by source": (
            totals.source_turns,
            "It takes the hook of the server that reads prompts, and a turn that got that far.",
        ),
        "Computed tokens split into again and new": (
            totals.split_turns,
            "No evidence what their sessions had computed before: it takes digests of this prompt and of the turn "
            "before it, from the hooks of both engines.",
        ),
        "Time to first token": (totals.ttft_turns, "It takes the proxy's hook, and an answer that began."),
        "Belongs to a session": (
            totals.turns - totals.unattributed_turns,
            "No session id came with them, and they continue no other turn.",
        ),
        "Legs joined by exact ids": (
            totals.turns - totals.inferred_turns,
            "Without a connector no id passes between the parts: joined by time (inferred).",
        ),
        "Reason known": (
            totals.turns - counts.by_reason.get("unknown", 0),
            "Not enough evidence: it takes all three hooks.",
        ),
    }
    rows = [(what, turns, totals.turns, why, "") for what, (turns, why) in measured.items()]
    decode = "The hook has to be on each of them."
    rows.insert(
        1,
        (
            "Reported by a server that writes answers (decode engine)",
            totals.decode_turns,
            came,
            decode,
            before if early else "",
        ),
    )
    return pd.DataFrame(
        [
            (what, text.part(turns, whole), (why if turns < whole else "Nothing is missing.") + note)
            for what, turns, whole, why, note in rows
        ],
        columns=["What", "Turns that have it", "Why the others lack it"],
        dtype="str",
    )
