"""The report of a session: one file, harmless whatever names it holds."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.app import agent_session
from tests.app.agent_session import call, ran
from tests.app.told import drawn, whole
from tests.store.rows import NOON, span, turn
from turnscope.semconv import SpanKind
from turnscope_app.report import build, drawing, file_name

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnirts\u2066",
    "\x00\x1b[31m\x07",
    "]]></style></title>&amp;",
    "x" * 10_000,
)


class Page(HTMLParser):
    """What a browser would make of it: tags with their attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""
        self._inside = ""
        self.style = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, _: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.style += data
        else:
            self.said += f" {data}"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return Page(build(whole(tmp_path_factory.mktemp("store"), agent_session.desk_agent(), "desk-agent"), NOON))


def test_it_tells_the_same_story_as_the_page(page: Page) -> None:
    said = " ".join(page.said.split())
    for sentence in (
        "It took 1 min 10 s: 69 % of the time it waited for tools",
        "Reuse would make it about 860 ms shorter",
        "Turn 3 read 18,204 tokens again (recomputed) because its handle had expired 12.00 s before",
        "Answers that may be wrong: 1",
        "What to do next, for those who run the model servers:",
        "6 turns.",
        "Reported by a server that reads prompts (prefill engine) 6 (100 %) Nothing is missing.".replace(
            "6 (100 %)", "6\xa0(100\xa0%)"
        ),
        "Made 2026-11-30 12:00:00 UTC by turnscope",
    ):
        assert " ".join(sentence.split()) in said, sentence


def test_it_asks_nothing_of_the_network_and_runs_nothing(page: Page) -> None:
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "use", "image"}
    for tag, attributes in page.tags:
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "style")}, tag
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in page.style
    assert "@import" not in page.style


def test_its_policy_allows_its_own_style_and_nothing_else(page: Page) -> None:
    (policy,) = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_every_bar_has_a_colour_and_says_what_it_is(page: Page) -> None:
    bars = [a for tag, a in page.tags if tag == "rect" and a.get("height") != "12"]
    assert len(bars) > 30
    for bar in bars:
        kind = str(bar["class"]).split()[0]
        assert f".{kind}{{" in page.style
        assert 0 <= float(str(bar["x"]).rstrip("%")) <= 100


def test_links_in_it_lead_somewhere(page: Page) -> None:
    ids = {a["id"] for _, a in page.tags if "id" in a}
    assert {a["href"].removeprefix("#") for _, a in page.tags if a.get("href")} <= ids


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text_and_nothing_else(name: str, tmp_path: Path) -> None:
    rows = [
        *call(
            1, 0, 2, 0.5, session=name, model=name, status=name, stage=name, reason=name, path=name,
            suspicions=[name], diverged_role=name, diverged_kind=name, agent_id=name, kept=(name, 3.0),
        ),
        *call(2, 4, 6, 0.5, session=name, reason=name),
        ran(1, SpanKind.TOOL, 0, 60, session=name, tool_name=name, service_name=name),
        ran(2, SpanKind.AGENT, 0, 60, session=name, agent_name=name, parent_session_id=name),
    ]  # fmt: skip
    made = build(whole(tmp_path, rows, name), NOON)
    page = Page(made)
    clean = Page(build(whole(tmp_path / "clean", agent_session.desk_agent(), "desk-agent"), NOON))
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in clean.tags} | {"pre"}
    assert {key for _, a in page.tags for key in a} <= {key for _, a in clean.tags for key in a}
    assert page.style == clean.style
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f]", made)
    assert "x" * 200 not in made
    assert "49" not in page.said or "7 * 7" in page.said


def test_a_session_of_spans_alone_and_one_of_a_single_turn_have_a_report(tmp_path: Path) -> None:
    alone = Page(build(whole(tmp_path, [span(1, kind="tool", tool_name="search")], "s1"), NOON))
    assert "none of its model calls passed an engine" in alone.said
    assert "None: no evidence" in alone.said
    one = Page(build(whole(tmp_path / "2", [turn(1)], "s1"), NOON))
    assert "1 turn." in one.said


def test_a_session_without_any_length_has_a_report(tmp_path: Path) -> None:
    page = Page(build(whole(tmp_path, [span(1, kind="tool", ended_ns=None)], "s1"), NOON))
    assert "Nothing of it lasted any time that was measured." in page.said


def test_4000_turns_are_all_in_the_table_and_not_more_bars_than_can_be_drawn(tmp_path: Path) -> None:
    made = build(whole(tmp_path, agent_session.many(), "long-runner"), NOON)
    page = Page(made)
    assert sum(tag == "rect" for tag, _ in page.tags) <= 1_100
    assert "4,000 turns." in page.said
    assert 'id="turn-4000"' in made
    assert "a bar stands for what took most of its stretch" in page.said


def test_what_is_inferred_is_paler_and_says_so(tmp_path: Path) -> None:
    found = whole(tmp_path, agent_session.idle(), "over-night")
    waits = [rect for rect in drawing.parts(found.summary) if rect.kind == "part-user_wait"]
    assert [(rect.pale, rect.title) for rect in waits] == [(True, "Waiting for a person: 11 h 59 min, inferred")]
    page = Page(build(found, NOON))
    assert "tools or application, not separated" in page.said
    assert "⋯ 11 h 59 min ⋯" in page.said


def test_ticks_are_round_times_that_do_not_touch(tmp_path: Path) -> None:
    found = drawn(whole(tmp_path, agent_session.desk_agent(), "desk-agent"))
    ticks = drawing.ticks(found.axis)
    assert [tick.label for tick in ticks][:3] == ["0", "10.00 s", "20.00 s"]
    assert all(right.x - left.x >= 9 for left, right in itertools.pairwise(ticks))


@pytest.mark.parametrize(
    ("session_id", "name"),
    [
        ("chat-1", "turnscope-chat-1.html"),
        ("../../etc/passwd", "turnscope-etc-passwd.html"),
        ("\u202e///", "turnscope-session.html"),
        ("x" * 500, f"turnscope-{'x' * 60}.html"),
    ],
)
def test_a_file_is_named_after_its_session_in_a_way_that_every_system_takes(session_id: str, name: str) -> None:
    assert file_name(session_id) == name
