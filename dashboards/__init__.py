"""Grafana dashboards, made from code: ``build.py`` writes the JSON files beside it (``make generate``)."""
