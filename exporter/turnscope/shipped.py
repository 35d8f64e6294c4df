"""What travels with the package besides code: Grafana dashboards, Prometheus rules with runbooks, provisioning, and a
recording for the demo."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

FOLDERS: Final = ("dashboards", "alerts", "deploy")
SUFFIXES: Final = (".json", ".yml", ".md")
"""Of what is shipped; what makes the dashboards and rules is not."""
EXPLORER: Final = "http://127.0.0.1:8501"
"""Where ``turnscope explore`` serves unless it is told otherwise."""
RUNBOOKS_PAGE: Final = "/runbooks?runbooks_file="
RUNBOOKS: Final = EXPLORER + RUNBOOKS_PAGE
"""Where the shipped alerts and panels say that runbooks are: an address is this, the alert's name and ``.md``. The
explorer has them with it, so it needs nothing but the package."""

ITS_ADDRESS: Final = f" (its address in place of `{EXPLORER.removeprefix('http://')}`)"
"""What runbooks say where they link to the explorer, until somebody has named its address."""


STORE_VARIABLE: Final = "TURNSCOPE_EXPLORE_STORE"
"""How the explorer's pages are told which store to show."""
DEMO_VARIABLE: Final = "TURNSCOPE_EXPLORE_DEMO"
"""... that their data are a demonstration's: what they are, in a sentence."""
TRACE_LINK_VARIABLE: Final = "TURNSCOPE_EXPLORE_TRACE_LINK"
"""... where a turn's trace is to be seen."""
LABELS_VARIABLE: Final = "TURNSCOPE_EXPLORE_SESSION_LABELS"
LINKS_VARIABLE: Final = "TURNSCOPE_EXPLORE_SESSION_LINKS"
"""... what applications have opted in to: JSON objects of templates by application."""


def files() -> Iterator[tuple[str, str]]:
    """Path, below the folder that they are written to, and content."""
    for name in FOLDERS:
        if (_top() / name).is_dir():
            yield from _files(_top() / name, name)


def addressed(text: str, *, explorer: str, runbooks: str | None) -> str:
    """A shipped file with these addresses of the explorer and of the runbooks; by default the explorer has them."""
    text = text.replace(RUNBOOKS, runbooks or explorer + RUNBOOKS_PAGE)
    return text if explorer == EXPLORER else text.replace(ITS_ADDRESS, "").replace(EXPLORER, explorer)


def runbooks() -> dict[str, str]:
    """File name to Markdown, one an alert."""
    folder = _top() / "alerts" / "runbooks"
    return {path: text for path, text in _files(folder, "") if path.endswith(".md")} if folder.is_dir() else {}


def recordings() -> list[Path]:
    """Real runs to be replayed; beside each what its engines had counted themselves."""
    return sorted(Path(str(path)) for path in (_top() / "recordings").iterdir() if path.name.endswith(".jsonl"))


def _top() -> Traversable:
    packed = resources.files("turnscope") / "assets"
    # Installed in place there is no copy of them: they stand at the top of the tree.
    return packed if packed.is_dir() else Path(__file__).resolve().parents[2]


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        below = f"{path}/{entry.name}" if path else entry.name
        if entry.is_dir():
            yield from _files(entry, below)
        elif entry.name.endswith(SUFFIXES):
            yield below, entry.read_text(encoding="utf-8")
