"""docs/settings.md."""

from __future__ import annotations

from docs.pages.markdown import HEAD, table
from turnscope.config import Settings
from turnscope.emit import settings

# The hooks read their variables without a settings library, to stay light: their texts are here.
_OF_HOOKS = {
    settings.ENDPOINT: "The sidecar, or a collector before it, OTLP over gRPC: `grpc://host:4317`, `grpcs://` for TLS. "
    "Without it there is no hook.",
    settings.OFF_FILE: "A path: while a file is there, the hook does nothing. Looked at every second.",
    settings.ENGINE_NAME: "The engine's name in metrics and on screens, from a small set; else its role and a number.",
    settings.HEARTBEAT: "Time between heartbeats. Default 5.",
    settings.DIGESTS: "`off`: no digests of prompts are made, and what needs them is unknown. Default `on`.",
    settings.DIGEST_KEY: "The secret that digests are made with, at least 16 characters; they compare only under the "
    "same one. Without it the hook asks the sidecar for the contents of its `digest.key`: needed behind a collector, "
    "and where two engines of one deployment send to different sidecars.",
    settings.GENERATION: "Set by the hook itself, for an engine's workers: which start of the engine they belong to.",
}


def page() -> str:
    """Every setting of the sidecar, as option and as environment variable."""
    prefix = Settings.model_config["env_prefix"]
    rows = [
        (
            f"`--{name.replace('_', '-')}`",
            f"`{prefix}{name.upper()}`",
            "" if field.default in (None, "", {}, []) else f"`{field.default}`",
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]
    hooks = [(f"`{name}`", what) for name, what in _OF_HOOKS.items()]
    return (
        f"{HEAD}# Settings\n\n## Sidecar\n\nOf `turnscope serve`. An option wins over its environment variable.\n\n"
        f"{table(('option', 'variable', 'default', 'what'), rows)}"
        "\n## Hooks\n\nIn the environment of engines and proxy. The proxy's spans go where OpenTelemetry's own "
        "variables say (`OTEL_EXPORTER_OTLP_ENDPOINT` and the like); without one of those no spans are made.\n\n"
        f"{table(('variable', 'what'), hooks)}"
    )
