"""Recording rules and alerts, declared in Python and written to ``rules.yml``; a runbook for each alert."""
