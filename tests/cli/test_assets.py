"""What ``turnscope assets`` writes, out of the tree and out of a built wheel."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.served import run
from tests.dashboards.promql import asked, family, labels_of, parse
from turnscope import shipped
from turnscope.catalog import METRICS

ROOT = Path(__file__).parents[2]


def tree(folder: Path) -> dict[str, str]:
    """Path to content, of what is not code."""
    kept = (path for path in folder.rglob("*") if path.suffix in (".json", ".yml", ".md"))
    return {str(path.relative_to(folder)): path.read_text() for path in kept}


def expected() -> dict[str, str]:
    return {
        f"{name}/{path}": text
        for name in ("dashboards", "alerts", "deploy")
        for path, text in tree(ROOT / name).items()
    }


def test_all_that_stands_behind_a_sidecar_is_written_and_said(tmp_path: Path) -> None:
    done = run("assets", str(tmp_path / "new" / "folder"))
    assert (done.returncode, done.stderr) == (0, "")
    found = tree(tmp_path / "new" / "folder")
    assert found == expected()
    assert {"dashboards/overview.json", "deploy/compose.yml", "deploy/grafana/datasources.yml"} <= found.keys()
    assert {"alerts/rules.yml", "alerts/runbooks/TurnscopeKvMismatch.md", "deploy/alertmanager.yml"} <= found.keys()
    boards = [name for name in found if name.startswith("dashboards/")]
    assert f"{tmp_path / 'new' / 'folder' / 'dashboards'}: {len(boards)} files" in done.stdout


def test_what_somebody_changed_is_not_overwritten_unasked(tmp_path: Path) -> None:
    assert run("assets", str(tmp_path)).returncode == 0
    assert run("assets", str(tmp_path)).returncode == 0
    mine = tmp_path / "deploy" / "prometheus.yml"
    mine.write_text("mine")
    refused = run("assets", str(tmp_path))
    assert refused.returncode == 2
    assert str(mine) in refused.stderr
    assert mine.read_text() == "mine"
    assert run("assets", str(tmp_path), "--overwrite").returncode == 0
    assert tree(tmp_path) == expected()


def test_alerts_and_panels_point_to_the_runbooks_of_the_house(tmp_path: Path) -> None:
    assert run("assets", str(tmp_path), "--runbooks", "https://wiki.example/turnscope/runbooks").returncode == 0
    found = tree(tmp_path)
    rules = yaml.safe_load(found["alerts/rules.yml"])["groups"]
    alerts = [rule for group in rules for rule in group["rules"] if "alert" in rule]
    assert {rule["annotations"]["runbook_url"] for rule in alerts} == {
        f"https://wiki.example/turnscope/runbooks/{rule['alert']}.md" for rule in alerts
    }
    for name in (name for name in found if name.startswith("dashboards/")):
        variables = {v["name"]: v for v in json.loads(found[name])["templating"]["list"]}
        assert variables["runbooks"]["query"] == "https://wiki.example/turnscope/runbooks/"
    assert not [name for name, text in found.items() if shipped.RUNBOOKS in text]


def test_everything_links_to_the_explorer_of_the_house(tmp_path: Path) -> None:
    assert run("assets", str(tmp_path), "--explorer", "https://turnscope.example/x/").returncode == 0
    found = tree(tmp_path)
    assert not [name for name, text in found.items() if "127.0.0.1:8501" in text]
    book = found["alerts/runbooks/TurnscopeKvMismatch.md"]
    assert "in the explorer:\n\n<https://turnscope.example/x/sessions?sessions_period=Last+hour" in book
    home = "https://turnscope.example/x/runbooks?runbooks_file="
    assert f"runbook_url: {home}TurnscopeKvMismatch.md" in found["alerts/rules.yml"]
    variables = {v["name"]: v for v in json.loads(found["dashboards/overview.json"])["templating"]["list"]}
    assert (variables["explorer"]["query"], variables["runbooks"]["query"]) == ("https://turnscope.example/x", home)


def test_runbooks_may_stand_elsewhere_than_the_explorer(tmp_path: Path) -> None:
    options = ("--explorer", "https://turnscope.example", "--runbooks", "https://wiki.example/rb")
    assert run("assets", str(tmp_path), *options).returncode == 0
    found = tree(tmp_path)
    assert "runbook_url: https://wiki.example/rb/TurnscopeKvMismatch.md" in found["alerts/rules.yml"]
    assert "<https://turnscope.example/sessions?" in found["alerts/runbooks/TurnscopeKvMismatch.md"]


@pytest.mark.parametrize("option", ["--explorer", "--runbooks"])
@pytest.mark.parametrize(
    "url", ["", "wiki.example", 'https://wiki.example/"', "https://wiki.example/{{ x }}", "ftp://x"]
)
def test_what_is_no_address_is_said_in_one_sentence(option: str, url: str, tmp_path: Path) -> None:
    refused = run("assets", str(tmp_path / "to"), option, url)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert option in refused.stderr
    assert not (tmp_path / "to").exists()


def test_a_folder_that_cannot_be_written_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = run("assets", str(tmp_path / "file" / "below"))
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "choose another folder" in refused.stderr


@pytest.mark.timeout(300)
def test_a_built_wheel_carries_them(tmp_path: Path) -> None:
    uv = Path(sys.executable).parent / "uv"
    build = [uv, "build", "--wheel", "--quiet", "--out-dir", tmp_path / "dist", ROOT]
    subprocess.run(build, check=True, capture_output=True, timeout=200)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    shutil.unpack_archive(wheel, tmp_path / "installed", "zip")
    done = subprocess.run(
        [sys.executable, "-c", "from turnscope.cli.main import run; run()", "assets", tmp_path / "out"],
        env={"PYTHONPATH": str(tmp_path / "installed")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert tree(tmp_path / "out") == expected()
    packed = tmp_path / "installed" / "turnscope" / "assets"
    assert not list(packed.rglob("*.py"))
    recorded = {path.name: path.read_bytes() for path in (packed / "recordings").iterdir()}
    assert recorded == {path.name: path.read_bytes() for path in (ROOT / "recordings").glob("*.json*")}


# --- what they say --------------------------------------------------------------------------------------
def test_prometheus_takes_its_configuration() -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: apt-get install --no-install-recommends prometheus"
    done = subprocess.run(
        [promtool, "check", "config", ROOT / "deploy" / "prometheus.yml"], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_containers_are_pinned_and_find_every_file_that_they_mount() -> None:
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yml").read_text())
    for name, service in compose["services"].items():
        _, _, version = service["image"].partition(":")
        assert version.removeprefix("v").replace(".", "").isdigit(), name
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), name
        for mount in service["volumes"]:
            source = mount.partition(":")[0]
            if source.startswith("."):
                assert (ROOT / "deploy" / source).exists(), mount
            else:
                assert source in compose["volumes"]


def test_data_sources_lead_to_each_other_and_ask_for_what_is_exported() -> None:
    sources = yaml.safe_load((ROOT / "deploy" / "grafana" / "datasources.yml").read_text())["datasources"]
    prometheus, tempo = sources
    (exemplars,) = prometheus["jsonData"]["exemplarTraceIdDestinations"]
    assert (exemplars["name"], exemplars["datasourceUid"]) == ("trace_id", tempo["uid"])
    metrics = tempo["jsonData"]["tracesToMetrics"]
    assert metrics["datasourceUid"] == prometheus["uid"]
    labels = {tag["value"] for tag in metrics["tags"]}
    for query in metrics["queries"]:
        for one in asked(parse(query["query"].replace("$$__tags", 'engine="p"'))):
            assert family(one.name)[0] in METRICS
            assert labels <= labels_of(one.name)


def test_dashboards_are_loaded_from_where_the_container_has_them() -> None:
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yml").read_text())
    (provider,) = yaml.safe_load((ROOT / "deploy" / "grafana" / "dashboards.yml").read_text())["providers"]
    assert f"../dashboards:{provider['options']['path']}:ro" in compose["services"]["grafana"]["volumes"]
    assert json.loads((ROOT / "dashboards" / "overview.json").read_text())["uid"] == "turnscope-overview"
