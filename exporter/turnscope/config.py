"""Every setting of the sidecar, once: name, default and help."""

from __future__ import annotations
