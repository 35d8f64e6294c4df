"""What a panel is, and how it is drawn: the only place that knows Grafana's builders for panels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as formats

from turnscope_app import words

DATASOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_OWN: Final = {"": "none", "ratio": "percentunit", "seconds": "s", "bytes": "bytes", "bytes/s": "Bps"}
HIDDEN: Final = ("Time", "Value", "__name__", "job", "instance")
"""Columns that a table of an info metric has no use for."""
QUANTILES: Final = ((0.5, "median"), (0.95, "95 of 100"))


def grafana_unit(unit: str) -> str:
    """Grafana's name for a unit of the catalogue, or for one of it a second (``turns/s``)."""
    return _OWN.get(unit, f"count:{unit}")


@dataclass(frozen=True)
class Query:
    """One expression of a panel; ``legend`` names a series by its labels, ``{{path}}``."""

    expr: str
    legend: str = ""
    exemplars: bool = False


@dataclass(frozen=True)
class Panel:
    """One panel. ``view``: ``curves, stacked, figure, bars`` or ``table``; the last three show one moment."""

    title: str
    about: str
    unit: str
    queries: tuple[Query, ...]
    view: str = "curves"
    width: int = 12
    alerts: tuple[str, ...] = ()
    """Whose runbooks say more."""
    explorer: str = ""
    """The query string with which the explorer lists the sessions it is about: see ``sessions_with``."""

    def build(self, number: int) -> Any:
        """Its builder, without a place. ``number``: its id in the dashboard."""
        height, builder = _VIEWS[self.view](self)
        builder.id(number).title(self.title).description(self.about)
        builder.datasource(DATASOURCE).height(height).span(self.width)
        if self.view != "table":
            only_positive = all(query.expr.endswith("> 0") for query in self.queries)
            builder.unit(grafana_unit(self.unit)).no_value("none" if only_positive else "not measured")
        for letter, query in zip("ABCDEFGH", self.queries, strict=False):
            target = prometheus.Dataquery().expr(query.expr).ref_id(letter).datasource(DATASOURCE)
            target.legend_format(query.legend or self.title)
            if query.exemplars:
                target.exemplar(True)
            if self.view in ("figure", "bars", "table"):
                target.instant()
                if self.view == "table":
                    target.format(formats.PromQueryFormat.TABLE)
            else:
                target.range()
            builder.with_target(target)
        return builder.links(self._links())

    def _links(self) -> list[Any]:
        links = [_link(f"Runbook: {alert}", f"${{runbooks}}{alert}.md") for alert in self.alerts]
        if self.explorer:
            links.append(_link("The sessions, in the explorer", f"${{explorer}}/sessions?{self.explorer}"))
        return links


def sessions_with(**filters: str) -> str:
    """For ``explorer``: a path or reason by its value, any other filter by what the explorer calls it."""
    shown = {"path": words.PATHS, "reason": words.REASONS}
    values = {f"sessions_{n}": shown[n][v].shown if n in shown else v for n, v in filters.items()}
    return urlencode(values)


def _link(title: str, url: str) -> Any:
    return dashboard.DashboardLink(title).type(models.DashboardLinkType.LINK).url(url).target_blank(True)


def _curves(panel: Panel) -> tuple[int, Any]:
    builder = timeseries.Panel().min(0) if _never_negative(panel) else timeseries.Panel()
    legend = common.VizLegendOptions().display_mode(looks.LegendDisplayMode.TABLE)
    legend.placement(looks.LegendPlacement.BOTTOM).show_legend(True).calcs(["lastNotNull", "max"])
    builder.legend(legend).fill_opacity(8).line_width(1).show_points(looks.VisibilityMode.NEVER)
    builder.tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI).sort(looks.SortOrder.DESCENDING))
    return 9, builder


def _never_negative(panel: Panel) -> bool:
    return not any(" - " in query.expr for query in panel.queries)


def _stacked(panel: Panel) -> tuple[int, Any]:
    height, builder = _curves(panel)
    return height, builder.stacking(common.StackingConfig().mode(looks.StackingMode.NORMAL)).fill_opacity(50)


def _figure(_: Panel) -> tuple[int, Any]:
    builder = stat.Panel().graph_mode(looks.BigValueGraphMode.NONE).color_mode(looks.BigValueColorMode.NONE)
    return 4, builder.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))


def _bars(_: Panel) -> tuple[int, Any]:
    builder = bargauge.Panel().orientation(looks.VizOrientation.HORIZONTAL).min(0)
    builder.display_mode(looks.BarGaugeDisplayMode.BASIC).value_mode(looks.BarGaugeValueMode.TEXT)
    return 9, builder.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))


def _table(_: Panel) -> tuple[int, Any]:
    hide = {"excludeByName": dict.fromkeys(HIDDEN, True)}
    builder = table.Panel().show_header(True).frame_index(0)
    return 6, builder.with_transformation(models.DataTransformerConfig(id_val="organize", options=hide))


_VIEWS: Final = {"curves": _curves, "stacked": _stacked, "figure": _figure, "bars": _bars, "table": _table}


@dataclass(frozen=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Page:
    """One dashboard."""

    name: str
    """Of its file, and of its address after ``turnscope-``."""
    title: str
    about: str
    rows: tuple[Row, ...]
