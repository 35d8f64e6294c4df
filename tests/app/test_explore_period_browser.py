"""The pages about a period, and the runbooks, in a real browser. Screenshots go to ``build/shots``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.app import period_sample
from tests.app.serving import PATIENCE_MS, chromium, explorer
from tests.app.test_explore_browser import AXE, Visit
from tests.node.setup import FOLDER, set_up

PAGES = {
    "reuse": "/reuse?reuse_period=All",
    "retention": "/retention?retention_period=All",
    "tools": "/tools?tools_period=All",
    "suspicions": "/suspicions?suspicions_period=All",
    "about": "/about?about_period=All",
    "runbooks": "/runbooks",
    "runbook": "/runbooks?runbooks_file={}",
}
"""By the name of their picture."""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = tmp_path_factory.mktemp("store")
    period_sample.write(str(store))
    with explorer(store) as address:
        yield address


def _opened(browser: Browser, url: str, scheme: str = "light", width: int = 1440) -> Visit:
    visit = Visit(browser, scheme, width)
    visit.page.goto(url)
    visit.page.locator("h1").first.wait_for()
    visit.settle()
    return visit


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390)])
def test_every_page_is_drawn_without_a_complaint_and_bars_nobody(
    browser: Browser, address: str, scheme: str, width: int
) -> None:
    set_up()
    for name, path in PAGES.items():
        visit = _opened(browser, address + path.format(_RUNBOOK), scheme, width)
        visit.shoot(f"period-{name}-{scheme}-{width}")
        assert visit.page.locator("[data-testid=stException]").count() == 0
        assert visit.complaints == [], name
        visit.page.add_script_tag(path=FOLDER / "node_modules/axe-core/axe.min.js")
        assert visit.page.evaluate(AXE) == [], (name, scheme, width)
        visit.page.context.close()


_RUNBOOK = "TurnscopeKvMismatch.md"


def test_from_home_to_a_slow_session_to_its_turn_and_the_reason(browser: Browser, address: str) -> None:
    visit = _opened(browser, f"{address}/?home_period=All")
    slowest = visit.page.get_by_test_id("stColumn").filter(has_text="The slowest session")
    slowest.get_by_test_id("stPageLink").locator("a").click()
    visit.page.wait_for_url(f"{address}/session?id=*")
    visit.settle()
    visit.click_row(1, x=260, table="session_table")
    visit.page.wait_for_url("**session_turn=2**")
    expect(visit.page.get_by_text("Of the prompt's 12,000 tokens").first).to_be_visible(timeout=PATIENCE_MS)
    assert visit.complaints == []


def test_from_a_suspicion_to_its_turn(browser: Browser, address: str) -> None:
    visit = _opened(browser, address + PAGES["suspicions"])
    visit.page.get_by_test_id("stPageLink").get_by_text("Open this turn in its session").click()
    visit.page.wait_for_url(f"{address}/session?*session_turn=*")
    expect(visit.page.get_by_text("Reused memory of other text").first).to_be_visible(timeout=PATIENCE_MS)
    assert visit.complaints == []


def test_a_table_of_a_period_can_be_taken_away(browser: Browser, address: str) -> None:
    visit = _opened(browser, address + PAGES["retention"])
    with visit.page.expect_download() as told:
        visit.page.locator(".st-key-retention_kept_downloads").get_by_role("button", name="CSV").click()
    assert told.value.suggested_filename == "turnscope-kept.csv"
    assert "too_late" in Path(told.value.path()).read_text()
