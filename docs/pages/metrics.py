"""docs/metrics.md."""

from __future__ import annotations

from docs.pages.markdown import HEAD, table
from turnscope.catalog import Metric
from turnscope.outputs.metrics import HELD_S

_SCRAPES = f"""
## What a scraper sees first

A counter that Prometheus meets at 7 adds nothing to its `increase()`: that counts from the first value it has. So a
series is shown at 0 once before it shows anything else, and **a first scrape may show 0 where something has been
counted**. The next one has all of it; nothing is lost, it comes one scrape late. Exactly:

- A series is shown at 0 until every regular scraper (whoever scraped twice within {HELD_S:.0f} s) has had it at 0,
  but for at most {HELD_S:.0f} s from its first increment: scrape more often than that. Label sets that are known in
  advance are shown at 0 from the start and hold nothing back.
- A Prometheus that comes when a series is older than that sees its true value at once. What was counted before it
  came is in that value and in none of its `increase()`.
- A second Prometheus (a pair for availability) is a scraper of its own, told by its address and `User-Agent`: a new
  series waits for both, and both count alike. Two that come from one address under one `User-Agent` pass for one, and
  one of them may miss a series' first increments in `increase()`: let one come by another address.
- Only scrapers are shown this, by the header `X-Prometheus-Scrape-Timeout-Seconds` that Prometheus sends. `curl` and
  browsers see the true values at any time.
- After a restart of the sidecar counters begin at 0 again, as Prometheus expects of a restart; the page answers 503
  until the journal has been read.
"""


def page(metrics: dict[str, Metric]) -> str:
    """Every metric of the catalogue, grouped by the part that counts it."""
    out = [
        HEAD,
        "# Metrics\n\n"
        "What `/metrics` serves, from `exporter/turnscope/catalog/`. Counters never go back and never count a turn "
        "twice: a turn is counted once, some seconds after its last fact is in, and facts that come later change the "
        "stored row but not the counters. Not measured is absent, never 0.\n\n"
        "Sessions, requests and ids of engines are never labels. `engine` is a bounded name: `--max-engine-names` of "
        "them (default 64), one more for each role that all further engines of it share (`prefill-other`), and `none`. "
        "One name has at most 500 sample lines on the page.\n\n"
        "Histograms are classic ones ([deploy](../deploy/README.md) says how Prometheus makes native ones of them). To "
        "a scraper that asks for OpenMetrics, their buckets name the trace of the last turn whose trace was sent "
        "(exemplars, `trace_id`).\n",
        _SCRAPES,
    ]
    for owner in dict.fromkeys(m.owner for m in metrics.values()):
        out.append(f"\n## Counted by: {owner}\n\n")
        rows = [
            (f"`{m.name}`", str(m.kind), m.unit or "1", ", ".join(f"`{x}`" for x in m.label_names), _help(m))
            for m in metrics.values()
            if m.owner == owner
        ]
        out.append(table(("metric", "type", "unit", "labels", "what"), rows))
    return "".join(out)


def _help(metric: Metric) -> str:
    buckets = f" Buckets: {', '.join(f'{b:g}' for b in metric.buckets)}." if metric.buckets else ""
    return metric.help + buckets + (" *Diagnostic.*" if metric.diagnostic else "")
