"""What others named does not drive the terminal."""

from __future__ import annotations

import io

from rich.table import Table
from rich.text import Text

from turnscope.cli.terminal import Terminal, readable


def test_controls_and_turns_of_direction_are_shown_as_marks() -> None:
    out = io.StringIO()
    console = Terminal(file=out, width=60, force_terminal=True, color_system=None)
    table = Table("id", box=None)
    table.add_row("a\x1b[2J\x1b]0;x\x07\u202eb")
    console.print(table)
    console.print(Text("c\x1b[31md [bold]e"), soft_wrap=True)
    printed = out.getvalue()
    assert not {"\x1b", "\x07", "\u202e"} & set(printed)
    assert "c\N{REPLACEMENT CHARACTER}[31md [bold]e" in printed


def test_what_can_be_read_stays() -> None:
    text = "a b\nÄ ش 日本\N{NO-BREAK SPACE}c"
    assert readable(text) == text
