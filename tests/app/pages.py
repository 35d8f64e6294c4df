"""The explorer's pages, opened as a link opens them, without a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

import turnscope_app
from turnscope.shipped import STORE_VARIABLE

MAIN = Path(turnscope_app.__file__).with_name("main.py")


def opened(view: str, url: Path | str, monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    """The page of ``views`` with that name, over the store at ``url``."""
    monkeypatch.setenv(STORE_VARIABLE, str(url))
    config.set_option("runner.magicEnabled", False)  # As ``explore.command`` has it.
    at = AppTest.from_file(str(MAIN), default_timeout=60)
    if view != "home":
        at.run()
        at.switch_page(f"views/{view}.py")
    for name, value in query.items():
        at.query_params[name] = value
    return at.run()


def said(at: AppTest) -> str:
    """Everything the page says in text."""
    kinds = (at.title, at.markdown, at.info, at.warning, at.error, at.caption, at.text, at.subheader)
    return "\n".join(str(element.value) for kind in kinds for element in kind)
