"""What the README tells people to do works, and is what the commands tell them."""

from __future__ import annotations

import re
import shutil
import subprocess
import textwrap
from pathlib import Path

from turnscope.config import Settings
from turnscope.measures.findings import findings
from turnscope.model import INSTALL_ALL, INSTALL_HOOK, SESSION_ADVICE, AssemblyStatus, ExporterStatus, SystemStatus

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_scrape_configuration_is_one_that_prometheus_takes(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: apt-get install --no-install-recommends prometheus"
    (snippet,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    config = tmp_path / "prometheus.yml"
    config.write_text(textwrap.dedent("   " + snippet.lstrip()))
    done = subprocess.run([promtool, "check", "config", config], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(Settings.model_fields["http"].default) in snippet


def test_advice_about_session_ids_is_the_same_in_the_readme_and_from_the_doctor() -> None:
    assert SESSION_ADVICE in " ".join(README.replace("`", "").split())
    status = SystemStatus(
        assembly=AssemblyStatus(attempts=1, attempts_without_session=1),
        exporter=ExporterStatus(version="", uptime_s=0.0),
    )
    assert [f.fix for f in findings(status) if f.check == "no_session_ids"] == [SESSION_ADVICE]


def test_turnscope_is_installed_from_a_clone_and_from_no_index_wherever_it_is_said() -> None:
    """An index may hold somebody else's package of that name."""
    root = Path(__file__).parents[2]
    places = [root / "README.md", *(root / "deploy").rglob("*.*")]
    places += [path for top in ("exporter", "app", "docs", "alerts") for path in (root / top).rglob("*.*")]
    told = [path for path in places if path.suffix in (".py", ".md", ".yml", ".yaml", ".toml")]
    assert len(told) > 200
    assert [str(path) for path in told if re.search(r"pip install\W+turnscope", path.read_text())] == []
    for command in (INSTALL_HOOK, INSTALL_ALL):
        assert command.partition(" (")[0] in README
