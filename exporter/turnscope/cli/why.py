"""``turnscope why A B``: does one request continue another, and where do they part? On this machine only."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from turnscope.cli import arguments, why_context
from turnscope.cli.errors import Sorry
from turnscope.history.pieces import TOOLS
from turnscope.measures.bodies import NoBody, Saved, read
from turnscope.measures.why import Comparison, Outcome, compare
from turnscope.measures.why_hints import hints
from turnscope.model import plural
from turnscope.semconv import DIVERGENCES, diverges_in

_LINE: Final = re.compile(r"(.+):(\d+)")
_VERDICT: Final = {
    Outcome.CONTINUES: ("CONTINUES", "bold green"),
    Outcome.SHORTENED: ("SHORTENED", "bold green"),
    Outcome.DIVERGES: ("DIVERGES", "bold red"),
}


def load(name: str, argument: str) -> Saved:
    """The request in a file, or in line N of ``FILE:N``; raises ``Sorry``, naming the argument."""
    path, line = Path(arguments.text(name, argument)), None
    if not path.exists() and (numbered := _LINE.fullmatch(argument)):
        path, line = Path(numbered[1]), int(numbered[2])
    try:
        return read(path.read_text(encoding="utf-8-sig"), line)
    except OSError as error:
        raise Sorry(f"{path} cannot be read ({error.strerror or error}): check the path") from None
    except UnicodeError:
        raise Sorry(f"{path} is no text (UTF-8): give a request's body as JSON") from None
    except NoBody as error:
        raise Sorry(f"{path} {error}") from None


def effect(found: Comparison, answered: bool) -> str:
    """What it means for the reuse of KV, in a few plain sentences."""
    if found.outcome is Outcome.SHORTENED:
        return "B is a beginning of A, as when an answer is asked for once more: all of it can be reused."
    if found.outcome is Outcome.CONTINUES:
        unsure = (
            ""
            if answered
            else " Whether the answer after A stands in B as it was generated, reasoning included, these two files do "
            "not show."
        )
        return f"All that was computed for A can be reused, and only what comes after it is computed.{unsure}"
    if found.place is not None and found.reusable_chars == found.before_chars:
        return (
            "All of A's prompt can be reused, but what was kept of the answer after it cannot: a handle that covers it "
            "would bring KV of other text. vLLM compares positions, not tokens, and reports success."
        )
    tools = found.place is not None and found.place.piece.role == TOOLS
    kept = "the system prompt, where the chat template prints tools after it" if tools else "all before this place"
    share = f"At most {_share(found.reusable_chars, found.before_chars)} of A's text can be reused, {kept}; the rest"
    return (
        f"{share if found.reusable_chars else 'Nothing of A can be reused: all'} of B is computed again. A handle from "
        "A's answer would bring KV of A's text for it: vLLM compares positions, not tokens, so the answer may be wrong "
        "and is reported as a success."
    )


def _share(part: float, whole: int) -> str:
    """0% and 100% are none and all of it."""
    if 0 < part < whole:
        part = min(max(part, whole / 100), 99 * whole / 100)
    return f"{100 * part / whole:.0f}%"


def _row(name: str, argument: str, request: Saved, chars: int) -> tuple[str, str, str]:
    messages = sum(piece.index is not None for piece in request.pieces)
    tools = sum(len(piece.texts) for piece in request.pieces if piece.role == TOOLS)
    parts = [plural(messages, "message")] if messages else []
    parts += [plural(tools, "tool")] if tools else []
    return name, argument, ", ".join([*parts, plural(chars, "character")])


def show(
    console: Console, names: tuple[str, str], requests: tuple[Saved, Saved], found: Comparison, text: bool
) -> None:
    """For people; ``text`` says whether the requests' own text may be shown."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, argument, request, chars in zip(
        "AB", names, requests, (found.before_chars, found.now_chars), strict=True
    ):
        table.add_row(*_row(name, argument, request, chars))
    console.print(table)
    console.print()
    word, style = _VERDICT[found.outcome]
    console.print(Text.assemble((word, style), "  ", _where(found)))
    if found.place is not None:
        if text:
            console.print()
            for line in why_context.lines(found.place, console.width):
                console.print(line, no_wrap=True, overflow="crop", soft_wrap=False)
        else:
            console.print("(The text at this place is shown on a terminal, or with --text.)")
        console.print()
        console.print(_figures(found))
    console.print()
    console.print(Text.assemble(("effect: ", "bold"), effect(found, requests[0].answer is not None)))
    for hint in hints(found):
        console.print()
        console.print(Text.assemble(("hint: ", "bold green"), hint.text))


def _where(found: Comparison) -> str:
    place = found.place
    if place is None:
        more = "B begins with all of A" if found.outcome is Outcome.CONTINUES else "B is a beginning of A"
        return f"{more}."
    kind = DIVERGENCES[found.kind] if found.kind is not None else ""
    path = place.piece.path if place.label in ("", place.piece.role) else f"{place.piece.path}.{place.label}"
    at = f"character {place.char:,}, line {place.line:,}, column {place.column:,}" if place.char else "the beginning"
    was = found.removed[0].role if found.removed and found.added else place.piece.role
    if was != place.piece.role:
        kind += f"; {was} before"
    return f"in {diverges_in(place.piece.index, place.piece.role)} ({kind}): at {at} of {path}."


def _figures(found: Comparison) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    after = found.now_chars - min(found.reusable_chars, found.now_chars)
    rows = [
        (found.reusable_chars, f"of A's {found.before_chars:,} characters can be reused at most", found.before_chars),
        (found.displaced_chars, f"of the {after:,} after it in B stand in A too, displaced", after),
    ]
    for count, what, whole in rows:
        table.add_row(f"{count:,}", f"{what} ({_share(count, whole)})" if whole else what)
    return table


def as_json(found: Comparison) -> dict[str, Any]:
    """For scripts: places and sizes, never text."""
    place = found.place
    at = None
    if place is not None:
        at = {"path": place.piece.path, "role": place.piece.role, "message": place.piece.index, "part": place.label}
        at |= {"character": place.char, "line": place.line, "column": place.column}
    return {
        "outcome": found.outcome,
        "kind": found.kind,
        "place": at,
        "before_chars": found.before_chars,
        "now_chars": found.now_chars,
        "reusable_chars": found.reusable_chars,
        "displaced_chars": found.displaced_chars,
        "removed": len(found.removed),
        "added": len(found.added),
        "hints": hints(found),
    }


def why(
    before: Annotated[
        str, typer.Argument(metavar="A", help="The earlier request: JSON, or JSON lines (the last; A:3 takes line 3).")
    ],
    now: Annotated[str, typer.Argument(metavar="B", help="The later request, likewise.")],
    json: Annotated[bool, typer.Option("--json", help="Print places and sizes as JSON, without any text.")] = False,
    text: Annotated[
        bool | None,
        typer.Option("--text/--no-text", help="Show the text at the place. Without either: on a terminal only."),
    ] = None,
) -> None:
    """Compare two request bodies: does B continue A, where do they part, and what of A's KV can B reuse?

    For requests that you have saved: chat, completions, responses or messages bodies, alone or in log lines under
    "body" or "request" (with "response" beside it, the answer is compared too). Nothing leaves this machine.

    Exit code 0: B continues A (or is a beginning of it). 1: they part. 2: a file is missing or holds no request.
    """
    requests = load("A", before), load("B", now)
    found = compare(*requests)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(as_json(found)), indent=1))
    else:
        console = Console(markup=False, highlight=False)
        show(console, (before, now), requests, found, sys.stdout.isatty() if text is None else text)
    raise typer.Exit(1 if found.outcome is Outcome.DIVERGES else 0)
