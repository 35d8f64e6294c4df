"""Every alert has a runbook that begins with what stops the harm, and names only what exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
import typer

from alerts.build import alerts
from tests.alerts.test_expressions import family
from turnscope import shipped
from turnscope.cli.main import COMMANDS, build
from turnscope.measures import findings
from turnscope_app import filters, words

RUNBOOKS: Final = sorted((Path(__file__).parents[2] / "alerts" / "runbooks").glob("*.md"))
SECTIONS: Final = ["Stop the harm", "Meaning", "Impact", "Diagnosis", "Mitigation", "Is it turnscope itself?"]

every_runbook = pytest.mark.parametrize("page", RUNBOOKS, ids=lambda p: p.stem)


def commands(page: Path) -> list[list[str]]:
    """Every ``turnscope`` command in a block or in code, as the shell would take it apart."""
    text = page.read_text()
    code = re.findall(r"```sh\n(.*?)```", text, re.DOTALL) + re.findall(r"`(turnscope [^`]+)`", text)
    found = []
    for line in re.split(r"\n|\||;", "\n".join(code)):
        if line.strip().startswith("turnscope "):
            found.append(shlex.split(line.strip())[1:])
    return found


def test_alerts_and_runbooks_are_the_same_set() -> None:
    assert {page.stem for page in RUNBOOKS} == {alert.name for alert in alerts()}
    assert {alert.runbook_url.removeprefix(shipped.RUNBOOKS) for alert in alerts()} == {page.name for page in RUNBOOKS}


@every_runbook
def test_a_runbook_has_its_sections_and_stops_the_harm_first(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem}\n")
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    assert parts[1::2] == SECTIONS
    assert all(body.strip() for body in parts[2::2])


@every_runbook
def test_each_step_that_stops_the_harm_says_what_it_costs(page: Path) -> None:
    stop = page.read_text().partition("## Stop the harm")[2].partition("\n## ")[0]
    steps = re.split(r"^\d\. ", stop, flags=re.MULTILINE)[1:]
    assert [step for step in steps if "Cost:" not in step and "nothing needs stopping" not in step] == []
    assert steps or "Nothing needs stopping" in stop


@every_runbook
def test_every_command_in_a_runbook_is_one_that_the_command_line_takes(page: Path) -> None:
    found = commands(page)
    assert found
    for name, *arguments in found:
        assert name in COMMANDS
        group: Any = typer.main.get_command(build(name))
        group.commands[name].make_context(name, list(arguments))


@every_runbook
def test_every_runbook_lists_the_conversations_in_the_terminal(page: Path) -> None:
    assert "sessions" in {name for name, *_ in commands(page)}
    assert "while read" not in page.read_text()


@every_runbook
def test_every_explorer_link_is_a_filter_that_the_explorer_has(page: Path) -> None:
    shown = {
        "path": {word.shown for word in words.PATHS.values()},
        "reason": {word.shown for word in words.REASONS.values()},
        "suspicion": {word.shown for word in words.SUSPICIONS.values()},
        "check": set(filters.CHECKS),
        "period": set(filters.PERIODS),
        "sort": set(filters.SORTS),
    }
    links = re.findall(r"<(http://127.0.0.1:8501/[^>]+)>", page.read_text())
    assert links
    for link in links:
        query = parse_qs(urlsplit(link).query)
        assert query
        for name, (value,) in query.items():
            assert value in shown[name.removeprefix("sessions_")]


@every_runbook
def test_the_explorer_and_the_terminal_list_turns_of_the_suspicions_that_the_alert_is_about(page: Path) -> None:
    (expr,) = {alert.expr for alert in alerts() if alert.name == page.stem and "suspicions_total" in alert.expr} or {""}
    kinds = set(re.findall(r"[a-z_]+", "".join(re.findall(r'kind=~?"(.+?)"', expr))))
    values = {word.shown: str(kind) for kind, word in words.SUSPICIONS.items()}
    links = re.findall(r"<(http://127.0.0.1:8501/[^>]+)>", page.read_text())
    linked = [parse_qs(urlsplit(link).query).get("sessions_suspicion", []) for link in links]
    assert {values[value] for found in linked for value in found} == kinds
    typed = [arguments for name, *arguments in commands(page) if name == "sessions" and "--suspicion" in arguments]
    assert {arguments[arguments.index("--suspicion") + 1] for arguments in typed} == kinds


@every_runbook
def test_every_metric_that_a_runbook_names_exists(page: Path) -> None:
    for name in re.findall(r"\b(turnscope_[a-z_]+)", page.read_text()):
        assert family(name) is not None, name


@every_runbook
def test_every_finding_of_the_doctor_that_a_runbook_names_exists(page: Path) -> None:
    checks = {check.__name__ for check in findings.CHECKS}
    for line in re.findall(r"`turnscope doctor`[^\n]*(?:\n  [^\n]*)*", page.read_text()):
        for group in re.findall(r"\(([a-z]+(?:_[a-z]+)+(?:, [a-z_]+)*)\)", line):
            assert set(group.split(", ")) <= checks, group
