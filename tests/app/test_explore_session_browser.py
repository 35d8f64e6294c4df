"""The session page and the report in a real browser. Screenshots go to ``build/shots``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.app import agent_session
from tests.app.serving import PATIENCE_MS, chromium, explorer
from tests.app.test_explore_browser import AXE, SHOTS, Visit
from tests.node.setup import FOLDER, set_up
from tests.store.rows import fill

HOSTILE = "\"><img src=x onerror=document.title='pwned'>\u202e</style><script>document.title='pwned'</script>"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An explorer over sessions of every kind, and one whose every name is an attack."""
    store = tmp_path_factory.mktemp("store")
    agent_session.write(str(store))
    hostile = agent_session.call(1, 0, 2, 0.5, session="hostile", model=HOSTILE, suspicions=[HOSTILE], reason=HOSTILE)
    fill(store, *(agent_session.apart(row, 9) for row in hostile))
    with explorer(store) as address:
        yield address


def _session(browser: Browser, address: str, session_id: str, scheme: str = "light", width: int = 1440) -> Visit:
    visit = Visit(browser, scheme, width)
    visit.page.goto(f"{address}/session?id={session_id}")
    visit.page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    visit.settle()
    return visit


def test_the_timeline_zooms_in_and_shows_all_again(browser: Browser, address: str) -> None:
    visit = _session(browser, address, "desk-agent")
    chart = visit.page.locator("[data-testid=stVegaLiteChart]").nth(1)
    chart.scroll_into_view_if_needed()
    visit.page.wait_for_timeout(500)
    whole = chart.screenshot()
    box = chart.bounding_box()
    assert box
    visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    visit.page.keyboard.down("Shift")
    for _ in range(4):
        visit.page.mouse.wheel(0, -200)
    visit.page.keyboard.up("Shift")
    visit.page.mouse.move(5, 5)
    visit.page.wait_for_timeout(500)
    SHOTS.mkdir(parents=True, exist_ok=True)
    near = chart.screenshot(path=SHOTS / "session-zoomed.png")
    assert near != whole
    visit.page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    visit.page.mouse.move(5, 5)
    visit.page.wait_for_timeout(500)
    assert chart.screenshot() != near
    assert visit.complaints == []


def test_the_timeline_is_zoomed_with_keys_alone(browser: Browser, address: str) -> None:
    visit = _session(browser, address, "desk-agent")
    chart = visit.page.get_by_test_id("stVegaLiteChart").nth(1)
    buttons = visit.page.locator(".st-key-session_zoom")
    buttons.get_by_role("button", name="Zoom in").focus()
    whole = chart.screenshot()
    for key, shown in (("Enter", "zoomed in"), ("Tab Tab Space", "moved")):
        before = chart.screenshot()
        for each in key.split():
            visit.page.keyboard.press(each)
        visit.settle()
        visit.page.wait_for_timeout(1_000)
        assert chart.screenshot() != before, shown
    focused = visit.page.evaluate("document.activeElement.innerText")
    assert "Earlier" in focused
    outlined = "getComputedStyle(document.activeElement).boxShadow + getComputedStyle(document.activeElement).outline"
    assert visit.page.evaluate(f"document.activeElement.matches(':focus-visible') && {outlined} !== 'none'")
    SHOTS.mkdir(parents=True, exist_ok=True)
    buttons.screenshot(path=SHOTS / "session-zoom-focus.png")
    for _ in range(2):
        visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Enter")
    visit.settle()
    visit.page.wait_for_timeout(1_000)
    assert chart.screenshot() == whole
    assert visit.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_session_bars_nobody(browser: Browser, address: str, scheme: str) -> None:
    set_up()
    visit = _session(browser, address, "desk-agent", scheme)
    visit.page.add_script_tag(path=FOLDER / "node_modules/axe-core/axe.min.js")
    assert visit.page.evaluate(AXE) == []


def test_from_the_story_to_a_turn_and_its_reason_is_one_click(browser: Browser, address: str) -> None:
    visit = _session(browser, address, "desk-agent")
    visit.page.get_by_role("button", name="Turn 3 read 18,204 tokens again").click()
    expect(visit.page.get_by_text("18,704 were computed")).to_be_visible(timeout=PATIENCE_MS)
    expect(visit.page.get_by_text("What was kept for this turn was about to be let go")).to_be_visible()
    expect(visit.page).to_have_url(f"{address}/session?id=desk-agent&session_turn=3", timeout=PATIENCE_MS)
    assert visit.complaints == []


def test_a_session_is_opened_by_a_click_anywhere_in_its_row(browser: Browser, address: str) -> None:
    visit = Visit(browser)
    for x in (60, 700):  # its name, and a figure of it
        visit.open(f"{address}/sessions?sessions_text=desk-agent")
        visit.click_row(0, x=x, table="sessions_table")
        expect(visit.page).to_have_url(f"{address}/session?id=desk-agent", timeout=PATIENCE_MS)
        visit.settle()
        visit.page.get_by_text("All sessions").click()
        expect(visit.page).to_have_url(f"{address}/sessions?sessions_text=desk-agent", timeout=PATIENCE_MS)
        expect(visit.page.get_by_text("1 session.")).to_be_visible(timeout=PATIENCE_MS)
    assert visit.complaints == []


def test_charts_for_engineers_are_drawn_once_somebody_opens_them(browser: Browser, address: str) -> None:
    named = "How the context grew, and what moved between the engines"
    visit = _session(browser, address, "desk-agent")
    details = visit.page.get_by_test_id("stExpander").filter(has_text=named)
    expect(details).to_have_count(1)
    expect(details.get_by_test_id("stVegaLiteChart")).to_have_count(0)
    details.locator("summary").click()
    expect(details.get_by_test_id("stVegaLiteChart")).to_have_count(3, timeout=PATIENCE_MS)
    for axis in ("Tokens", "Megabytes", "Milliseconds"):
        expect(details.locator("svg text").filter(has_text=re.compile(f"^{axis}$"))).to_be_visible(timeout=PATIENCE_MS)
    expect(visit.page).to_have_url(re.compile("session_engine=true"), timeout=PATIENCE_MS)
    again = _session(browser, address, "desk-agent&session_engine=true")
    opened = again.page.get_by_test_id("stExpander").filter(has_text=named).get_by_test_id("stVegaLiteChart")
    expect(opened).to_have_count(3, timeout=PATIENCE_MS)
    assert visit.complaints == again.complaints == []


def test_the_report_is_downloaded_and_opens_without_the_explorer(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    visit = _session(browser, address, "desk-agent")
    with visit.page.expect_download() as waiting:
        visit.page.locator(".st-key-session_report button").first.click()
    assert waiting.value.suggested_filename == "turnscope-desk-agent.html"
    waiting.value.save_as(tmp_path / "report.html")
    for scheme, width in (("light", 1200), ("dark", 390)):
        report = Visit(browser, scheme, width)
        report.page.goto((tmp_path / "report.html").as_uri())
        expect(report.page.get_by_text("Turn 3 read 18,204 tokens again")).to_be_visible()
        report.page.screenshot(path=SHOTS / f"report-{scheme}-{width}.png", full_page=True)
        assert report.page.evaluate("document.documentElement.scrollWidth") <= width
        assert report.complaints == []
        assert [url for url in report.foreign if not url.startswith("file://")] == []


def test_hostile_names_do_nothing_on_the_page_and_in_its_report(browser: Browser, address: str, tmp_path: Path) -> None:
    visit = _session(browser, address, "hostile")
    assert "pwned" not in visit.page.title()
    assert visit.page.locator("img[src=x]").count() == 0
    with visit.page.expect_download() as waiting:
        visit.page.locator(".st-key-session_report button").first.click()
    waiting.value.save_as(tmp_path / "report.html")
    visit.shoot("session-hostile")
    report = Visit(browser)
    report.page.goto((tmp_path / "report.html").as_uri())
    assert "pwned" not in report.page.title()
    assert report.page.locator("img").count() == report.page.locator("script").count() == 0
    assert report.complaints == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390)])
def test_every_kind_of_session_is_drawn(browser: Browser, address: str, scheme: str, width: int) -> None:
    for session_id in ("desk-agent", "over-night", "long-runner", "one-turn"):
        visit = _session(browser, address, session_id, scheme, width)
        visit.shoot(f"{session_id}-{scheme}-{width}")
        assert visit.page.locator("[data-testid=stException]").count() == 0
        assert visit.complaints == []
        wide = visit.page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert wide <= width, session_id
