"""The explorer as a person sees it: a real server, a real browser. Screenshots go to ``build/shots``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from tests.app import sample
from tests.app.serving import ANSWER, PATIENCE_MS, USEFUL, chromium, explorer, until_useful
from tests.node.setup import FOLDER, set_up
from tests.store.rows import fill, turn

SHOTS = Path(__file__).parents[2] / "build" / "shots"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An explorer over the sample sessions, with one more whose id is an attack."""
    store = tmp_path_factory.mktemp("store")
    sample.write(str(store))
    fill(store, turn(1, session_id="<img src=x onerror=document.title='pwned'>\u202egnirts", prompt_tokens=5))
    with explorer(store) as address:
        yield address


class Visit:
    """A page that remembers what the browser complained about."""

    def __init__(self, browser: Browser, scheme: str = "light", width: int = 1440) -> None:
        self.width = width
        self.page: Page = browser.new_context(
            viewport={"width": width, "height": 1000},
            color_scheme=scheme,  # type: ignore[arg-type]
        ).new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.foreign.append(request.url))

    def _hear(self, message: ConsoleMessage) -> None:
        # Streamlit's page looks for its server below the page's own address first, and for a 404 goes one up.
        looking_for_server = "/_stcore/" in message.location.get("url", "") and "404" in message.text
        if message.type == "error" and not looking_for_server:
            self.complaints.append(f"{message.text} {message.location}")

    def open(self, url: str) -> float:
        """Seconds until the page's heading and its first table are there."""
        return until_useful(self.page, url, f"{USEFUL}, {ANSWER}")

    def settle(self) -> None:
        """Until nothing is loading any more."""
        expect(self.page.locator("[data-testid=stSkeleton]")).to_have_count(0, timeout=PATIENCE_MS)
        expect(self.page.locator("[data-testid=stStatusWidget]")).to_have_count(0, timeout=PATIENCE_MS)

    def shoot(self, name: str) -> None:
        """A picture of the whole page."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.settle()
        height = self.page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        self.page.set_viewport_size({"width": self.width, "height": min(int(height) + 60, 5_000)})
        self.page.wait_for_timeout(1_000)
        self.page.screenshot(path=SHOTS / f"{name}.png")

    def choose(self, key: str, word: str) -> None:
        """Open the list of the select box ``key`` and choose from it. One may be so long that only a part of it is
        there: the word is typed, as a person would who knows it."""
        box = self.page.locator(f".st-key-{key} input")
        box.click()
        box.press_sequentially(word)
        self.page.get_by_role("option", name=word, exact=True).click()

    def click_row(self, row: int, x: int = 60, *, table: str) -> None:
        """Click the ``row``-th row (from 0) of the table with the key ``table``, once it is there: after a link, the
        page before may still be drawn."""
        scroller = self.page.locator(f".st-key-{table} .dvn-scroller")
        scroller.wait_for()
        self.settle()
        scroller.click(position={"x": x, "y": 35 + 17 + 35 * row})


def test_the_list_opens_before_a_person_gives_up(browser: Browser, address: str) -> None:
    # Two cores draw the page, serve it and run this test: the limit is for a page that hangs, not a measurement.
    times = [Visit(browser).open(address) for _ in range(3)]
    assert min(times) < 15, times


def test_nothing_is_fetched_from_elsewhere_and_nothing_is_complained_of(browser: Browser, address: str) -> None:
    for path in ("/", "/sessions", "/session?id=compacting-agent", "/about"):
        visit = Visit(browser)
        visit.open(address + path)
        visit.settle()
        assert visit.complaints == []
        assert [url for url in visit.foreign if not url.startswith((address, "data:", "blob:"))] == []


def test_a_click_on_a_session_opens_its_turns_and_a_click_on_a_turn_tells_it(browser: Browser, address: str) -> None:
    visit = Visit(browser)
    visit.open(f"{address}/sessions?sessions_check=Possibly+wrong")
    visit.click_row(0, table="sessions_table")
    expect(visit.page.locator("h1")).to_have_text("compacting-agent", timeout=PATIENCE_MS)
    expect(visit.page).to_have_url(f"{address}/session?id=compacting-agent", timeout=PATIENCE_MS)
    visit.click_row(3, x=260, table="session_table")
    expect(visit.page.get_by_text("Of the prompt's 1,016 tokens")).to_be_visible(timeout=PATIENCE_MS)
    visit.page.get_by_text("All sessions").click()
    expect(visit.page).to_have_url(f"{address}/sessions?sessions_check=Possibly+wrong", timeout=PATIENCE_MS)
    assert visit.complaints == []


def test_the_link_of_a_filtered_list_reopens_it(browser: Browser, address: str) -> None:
    visit = Visit(browser)
    visit.open(f"{address}/sessions")
    visit.settle()
    visit.page.get_by_text("More filters").click()
    visit.choose("sessions_reason", "Stuck")
    expect(visit.page.get_by_text("1 session.")).to_be_visible(timeout=PATIENCE_MS)
    expect(visit.page).to_have_url(f"{address}/sessions?sessions_reason=Stuck", timeout=PATIENCE_MS)
    again = Visit(browser)
    again.open(visit.page.url)
    expect(again.page.get_by_text("1 session.")).to_be_visible(timeout=PATIENCE_MS)
    visit.page.reload()
    expect(visit.page.get_by_text("1 session.")).to_be_visible(timeout=PATIENCE_MS)


def test_a_list_that_is_opened_while_the_filters_unfold_stays_open(browser: Browser, address: str) -> None:
    visit = Visit(browser)
    visit.open(f"{address}/sessions")
    visit.settle()
    for _ in range(5):
        visit.page.get_by_text("More filters").click()
        visit.page.locator(".st-key-sessions_reason input").click()
        visit.page.wait_for_timeout(1_000)
        expect(visit.page.get_by_role("option", name="Stuck", exact=True)).to_be_visible()
        visit.page.keyboard.press("Escape")
        visit.page.get_by_text("More filters").click()
        visit.page.wait_for_timeout(1_000)


def test_from_the_answer_to_the_worst_session_to_its_turn_and_the_reason(browser: Browser, address: str) -> None:
    visit = Visit(browser)
    visit.open(address)
    expect(visit.page.get_by_text("Some answers may be wrong")).to_be_visible(timeout=PATIENCE_MS)
    visit.page.get_by_test_id("stPageLink").get_by_text("compacting-agent").click()
    expect(visit.page.locator("h1")).to_have_text("compacting-agent", timeout=PATIENCE_MS)
    expect(visit.page.get_by_text("Reused memory of other text").first).to_be_visible(timeout=PATIENCE_MS)
    assert visit.complaints == []


def test_a_warning_leads_to_the_sessions_it_is_about(browser: Browser, address: str) -> None:
    visit = Visit(browser)
    visit.open(address)
    visit.page.get_by_test_id("stPageLink").get_by_text("Show them").first.click()
    expect(visit.page).to_have_url(f"{address}/sessions?sessions_check=Possibly+wrong", timeout=PATIENCE_MS)
    expect(visit.page.get_by_text("1 session.")).to_be_visible(timeout=PATIENCE_MS)


def test_a_copied_link_is_the_address_of_this_view(browser: Browser, address: str) -> None:
    visit = Visit(browser)
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.open(f"{address}/sessions?sessions_check=Possibly+wrong")
    visit.page.get_by_role("button", name="Copy link to this view").click()
    expect(visit.page.get_by_text("Copied")).to_be_visible(timeout=PATIENCE_MS)
    copied = visit.page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{address}/sessions?sessions_check=Possibly+wrong"


def test_a_table_can_be_taken_away(browser: Browser, address: str) -> None:
    visit = Visit(browser)
    visit.open(f"{address}/sessions")
    visit.settle()
    with visit.page.expect_download() as told:
        visit.page.get_by_role("button", name="CSV", exact=True).click()
    assert told.value.suggested_filename == "turnscope-sessions.csv"
    lines = Path(told.value.path()).read_text().splitlines()
    assert lines[0].startswith("session_id,")
    assert len(lines) == 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_axe_finds_of_keyboard_names_and_contrast_is_nothing(browser: Browser, address: str, scheme: str) -> None:
    set_up()
    for path in ("/", "/sessions"):
        visit = Visit(browser, scheme)
        visit.open(address + path)
        visit.settle()
        visit.page.add_script_tag(path=FOLDER / "node_modules/axe-core/axe.min.js")
        found = visit.page.evaluate(AXE)
        assert found == [], (path, scheme)


AXE = """async () => (await axe.run(document, {runOnly: ["wcag2a", "wcag2aa"]})).violations
    .filter(found => ["serious", "critical"].includes(found.impact))
    .flatMap(found => found.nodes.map(node => `${found.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`))"""
"""What bars someone from a page: violations that axe calls serious or critical."""


def test_a_hostile_session_id_does_nothing(browser: Browser, address: str) -> None:
    visit = Visit(browser)
    visit.open(f"{address}/sessions?sessions_text=onerror")
    visit.click_row(0, table="sessions_table")
    expect(visit.page.locator("h1")).to_contain_text("<img src=x", timeout=PATIENCE_MS)
    visit.settle()
    assert visit.page.locator("h1 img").count() == 0
    assert "pwned" not in visit.page.title()
    visit.page.reload()
    expect(visit.page.locator("h1")).to_contain_text("<img src=x", timeout=PATIENCE_MS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_drawn_in_light_and_dark(browser: Browser, address: str, scheme: str) -> None:
    for name, path in {
        "home": "/",
        "sessions": "/sessions",
        "session": "/session?id=coding-agent-7f3a",
        "suspicious": "/session?id=compacting-agent",
        "failing": "/session?id=flaky-network",
        "unattributed": "/session?unattributed=1",
        "about": "/about",
    }.items():
        visit = Visit(browser, scheme)
        visit.open(address + path)
        visit.shoot(f"{name}-{scheme}")
        assert visit.page.locator("[data-testid=stException]").count() == 0
        charts = visit.page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg").count()
        assert (charts > 0) == (path == "/" or path.startswith("/session?id="))


_CUT = """() => {
    const cut = e => ["hidden", "clip", "scroll", "auto"].includes(getComputedStyle(e).overflowX)
        && e.scrollWidth > e.clientWidth + 1;
    const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const found = [];
    for (const box of document.querySelectorAll(
        "[data-testid=stMetric], [data-testid=stTable], [data-testid=stButtonGroup]")) {
        for (const e of [box, ...box.querySelectorAll("*")]) if (cut(e)) found.push("cut: " + e.textContent);
        for (const text of box.querySelectorAll("p")) {
            const range = document.createRange();
            range.selectNodeContents(text);
            const inside = box.getBoundingClientRect(), drawn = range.getBoundingClientRect();
            if (drawn.right > inside.right + 1) found.push("over the edge: " + text.textContent);
            for (const icon of box.querySelectorAll("[data-testid=stTooltipIcon]"))
                if (over(drawn, icon.getBoundingClientRect())) found.push("under its icon: " + text.textContent);
        }
    }
    return found;
}"""
"""Texts of cards, of pills and of tables of sentences that a person cannot read whole."""


@pytest.mark.parametrize("width", [1280, 900, 390])
def test_no_card_and_no_sentence_is_cut_at_any_width(browser: Browser, address: str, width: int) -> None:
    for name, path in {
        "home": "/",
        "sessions": "/sessions",
        "session": "/session?id=support-chat-4711",
        "unattributed": "/session?unattributed=1",
        "about": "/about",
    }.items():
        visit = Visit(browser, width=width)
        visit.open(address + path)
        visit.settle()
        for expander in visit.page.locator("[data-testid=stExpander]").all():
            expander.locator("summary").click()
            held = "table, code, input, [data-testid=stVegaLiteChart], [data-testid=stAlert]"
            expander.locator(held).first.wait_for()
        visit.shoot(f"{name}-{width}")
        assert visit.page.evaluate(_CUT) == [], (name, width)
        assert visit.page.locator("[data-testid=stMetric], [data-testid=stTable]").count() > 3
