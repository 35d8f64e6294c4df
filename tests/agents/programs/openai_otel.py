"""An agent written by hand, through OpenTelemetry's own instrumentation of OpenAI's client."""

from common import SESSION, provider

tracing = provider()

from opentelemetry import trace  # noqa: E402
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # noqa: E402
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor  # noqa: E402
from opentelemetry.sdk._logs import LoggerProvider  # noqa: E402
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor  # noqa: E402

# It puts content into log records.
logging = LoggerProvider()
logging.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
OpenAIInstrumentor().instrument(tracer_provider=tracing, logger_provider=logging)

import loop  # noqa: E402

with trace.get_tracer("app").start_as_current_span("request", attributes={"gen_ai.conversation.id": SESSION}):
    loop.run()
tracing.force_flush()
tracing.shutdown()
logging.shutdown()
