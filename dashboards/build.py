"""Every dashboard as JSON. ``docs/generate.py`` writes the files and compares them with what is committed."""

from __future__ import annotations

import itertools
import json
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from dashboards import health, latency, overview, retention, reuse, sessions, transfer
from dashboards.panels import DATASOURCE, Page
from dashboards.queries import DEPLOYMENT
from turnscope.shipped import EXPLORER, RUNBOOKS

PAGES: Final = (
    overview.PAGE,
    reuse.PAGE,
    transfer.PAGE,
    retention.PAGE,
    latency.PAGE,
    sessions.PAGE,
    health.PAGE,
)


def files() -> dict[str, str]:
    """File name to JSON of every dashboard."""
    return {f"{page.name}.json": _json(page) for page in PAGES}


def _json(page: Page) -> str:
    made = json.loads(json.dumps(_dashboard(page).build(), cls=JSONEncoder))
    # The builders give every variable what only those of an interval have.
    for variable in made["templating"]["list"]:
        for field in ("auto", "auto_count", "auto_min"):
            variable.pop(field, None)
    return json.dumps(made, indent=2, sort_keys=True) + "\n"


def _dashboard(page: Page) -> dashboard.Dashboard:
    built = dashboard.Dashboard(page.title).uid(f"turnscope-{page.name}").description(page.about)
    built.tags(["turnscope"]).time("now-6h", "now").refresh("1m").timezone("browser").editable()
    built.tooltip(models.DashboardCursorSync.CROSSHAIR)
    built.variables(_variables()).links(_links())
    numbers = itertools.count(1)
    for row in page.rows:
        built.with_row(dashboard.Row(row.title).id(next(numbers)))
        for panel in row.panels:
            built.with_panel(panel.build(next(numbers)))
    return built


def _variables() -> list[Any]:
    everything = models.VariableOption(text="All", value="$__all", selected=True)
    return [
        dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"),
        _query("deployment", "Deployment (scrape job)", "label_values(turnscope_exporter_build_info, job)", everything),
        _query("engine", "Engine", f"label_values(turnscope_engine_info{{{DEPLOYMENT}}}, engine)", everything),
        dashboard.TextBoxVariable("explorer").label("Explorer's address").default_value(EXPLORER),
        dashboard.TextBoxVariable("runbooks").label("Runbooks' address").default_value(RUNBOOKS),
    ]


def _query(name: str, label: str, query: str, everything: Any) -> Any:
    variable = dashboard.QueryVariable(name).label(label).datasource(DATASOURCE).query(query)
    variable.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(models.VariableSort.ALPHABETICAL_ASC)
    return variable.multi(True).include_all(True).all_value(".*").current(everything)


def _links() -> list[Any]:
    others = dashboard.DashboardLink("turnscope").type(models.DashboardLinkType.DASHBOARDS).tags(["turnscope"])
    explorer = dashboard.DashboardLink("Explorer").type(models.DashboardLinkType.LINK).url("${explorer}")
    runbooks = dashboard.DashboardLink("Runbooks").type(models.DashboardLinkType.LINK).url("${runbooks}")
    return [
        others.as_dropdown(False).include_vars(True).keep_time(True),
        explorer.target_blank(True).tooltip("Sessions and turns one by one"),
        runbooks.target_blank(True).tooltip("What to do when an alert fires"),
    ]
