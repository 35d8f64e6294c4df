"""An agent written by hand, through OpenLLMetry (Traceloop's SDK)."""

import os

from common import SESSION, weather

os.environ["TRACELOOP_TELEMETRY"] = "false"

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import agent, tool
from traceloop.sdk.instruments import Instruments

Traceloop.init(app_name="desk", exporter=OTLPSpanExporter(), disable_batch=True, instruments={Instruments.OPENAI})
Traceloop.set_association_properties({"session_id": SESSION})

import loop  # noqa: E402


@agent(name="forecaster")
def answer() -> None:
    """One task."""
    loop.run(tool(name="weather")(weather))


answer()
