"""A report's text, and the page that is made of it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

import jinja2
import pyarrow as pa
from markupsafe import Markup

from turnscope.model import SessionSummary
from turnscope.semconv import Evidence, Part
from turnscope.store.fates import Fate
from turnscope.store.whole import Whole
from turnscope_app import colours, columns, fields, session_answer, session_story, stories, text, timeline, words
from turnscope_app.advice import OWNERS
from turnscope_app.columns import Column, Kind
from turnscope_app.report import drawing

_HERE: Final = Path(__file__).parent
MOST_TURNS: Final = 5_000
"""Rows of the table of turns at most."""
_SHOWN: Final = (
    "number",
    "mark",
    "started_ns",
    "path",
    "reason",
    "prompt_tokens",
    "local_hit_tokens",
    "fetched_tokens",
    "recomputed_tokens",
    "new_tokens",
    "output_tokens",
    "ttft_ns",
    "duration_ns",
    "hold_fate",
)


class Coverage(NamedTuple):
    """How much of the session one kind of measurement covers."""

    what: str
    turns: str
    why: str


def build(whole: Whole, now_ns: int) -> str:
    """The whole page. Pure: what it says of when it was made is ``now_ns``."""
    summary = whole.summary
    indexes = whole.turns["turn_index"].to_pylist()
    numbers = stories.numbers(indexes)
    rows = whole.turns.to_pylist()
    lines, more = session_story.lines(rows, numbers, whole.segments)
    drawn = timeline.build(whole, rows, numbers, first=True, last=True)
    shown = [next(column for column in fields.TURNS if column.name == name) for name in _SHOWN]
    suspicious = [(n, row) for n, row in zip(numbers, rows, strict=True) if row["suspicions"]]
    style = _style()
    return (
        _environment()
        .get_template("page.html")
        .render(
            style=style,
            style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
            session=text.named(summary.applications, (), summary.session_id),
            head=session_answer.head(summary),
            answer=session_answer.answer(summary),
            ceiling=session_answer.ceiling(summary),
            steps=[(OWNERS[owner][0], said) for owner, said in session_answer.next_steps(summary)],
            doubts=session_answer.doubts(summary),
            separated=session_answer.separated(summary),
            separates=session_answer.SEPARATES,
            bar=drawing.parts(summary),
            parts=[_part(whole, part, ns) for part, ns in session_answer.parts(summary).items()],
            inputs=list(_inputs(summary)),
            wall=text.duration(summary.wall_ns),
            lanes=drawing.lanes(drawn),
            ticks=drawing.ticks(drawn.axis),
            gaps=drawing.gaps(drawn.axis),
            merged=drawn.merged,
            holds=bool(drawn.holds),
            lines=[(line.turn, line.said) for line in lines],
            more=more,
            suspicions=[(n, stories.warning(row), stories.parted(row)) for n, row in suspicious],
            heads=[(_heading(column), column.help) for column in shown],
            turns=[
                (number, [_cell({**row, "number": number}, column) for column in shown])
                for number, row in list(zip(numbers, rows, strict=True))[:MOST_TURNS]
            ],
            turns_of=text.shown_of(min(len(rows), MOST_TURNS), len(rows), "turn"),
            most_turns=MOST_TURNS,
            absent=words.NOT_MEASURED,
            coverage=_coverage(whole.turns, whole),
            made=text.when(now_ns),
            version=version("turnscope"),
            not_this=words.NOT_THIS,
        )
    )


def file_name(session_id: str) -> str:
    """A name that every file system takes, made of the session's id."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", session_id).strip("-")[:60]
    return f"turnscope-{plain or 'session'}.html"


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _style() -> Markup:
    """Safe to put into the page as it is: it is ours, and no value of a session is in it."""
    shades = {f"part-{part}": colour for part, colour in colours.PARTS.items()}
    shades |= {f"fate-{fate}": colours.FATES[Fate(fate)] for fate in words.FATES}
    rules = "".join(f".{name}{{fill:{colour};stroke:{colour};color:{colour}}}\n" for name, colour in shades.items())
    return Markup((_HERE / "style.css").read_text() + rules)


def _part(whole: Whole, part: Part, ns: int) -> dict[str, str]:
    summary, word = whole.summary, words.PARTS[part]
    told = session_answer.inferred(summary, part)
    known = "" if part is Part.UNKNOWN else "measured"
    if told:
        known = "inferred" if told == ns else f"{text.share(told, ns)} inferred"
    return {
        "kind": f"part-{part}",
        "plain": word.plain,
        "term": word.term,
        "story": word.story,
        "length": text.duration(ns),
        "share": text.share(ns, summary.wall_ns),
        "known": known,
    }


def _inputs(summary: SessionSummary) -> Iterable[tuple[str, str, str, str]]:
    """What reading the prompts was made of: name, time, share, meaning."""
    for detail, word in words.INPUT.items():
        ns = getattr(summary, f"input_{detail}_ns")
        if ns:
            yield word.shown, text.duration(ns), text.share(ns, summary.input_processing_ns), word.story


def _heading(column: Column) -> str:
    return column.heading if column.kind is Kind.TOKENS else column.label


def _cell(row: columns.Row, column: Column) -> str:
    """With its unit, unless the heading has it."""
    found = column.of(row)
    return text.count(found) if column.kind is Kind.TOKENS else columns.written(row, column)


def _coverage(turns: pa.Table, whole: Whole) -> list[Coverage]:
    total = len(turns)

    def known(name: str) -> int:
        return total - int(turns[name].null_count)

    def said(name: str) -> int:
        return sum(1 for value in turns[name].to_pylist() if value)

    found = (
        (
            "Reported by a server that reads prompts (prefill engine)",
            said("has_prefill"),
            "The hook has to be on each of them.",
        ),
        (
            "Reported by a server that writes answers (decode engine)",
            said("has_decode"),
            "The hook has to be on each of them.",
        ),
        ("Reported by the proxy", said("has_attempt"), "They did not pass a proxy with the hook."),
        (
            "Prompt tokens told apart by source",
            known("computed_tokens"),
            "It takes the hook of the server that reads prompts.",
        ),
        (
            "Computed tokens split into again and new",
            known("recomputed_tokens"),
            "It takes digests of this prompt and of the turn before it, from the hooks of both engines.",
        ),
        ("Time to the first word", known("ttft_ns"), "It takes the proxy's hook, and an answer that began."),
        (
            "Reason known",
            total - sum(reason == "unknown" for reason in turns["reason"].to_pylist()),
            "Not enough evidence: it takes all three hooks.",
        ),
    )
    out = [
        Coverage(what, text.part(count, total), "Nothing is missing." if count == total else why)
        for what, count, why in found
        if total
    ]
    inferred = sum(s.end_ns - s.start_ns for s in whole.segments if s.evidence is Evidence.INFERRED)
    spans = "Tools and the application's work are told apart by them." if whole.summary.spans else "None came."
    out.append(Coverage("Spans of the agent", f"{whole.summary.spans:,}", spans))
    out.append(
        Coverage(
            "Time that is inferred",
            text.share(inferred, whole.summary.wall_ns),
            "Told by what came before and after it; the rest is measured or unknown.",
        )
    )
    return out
