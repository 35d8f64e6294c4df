// The OpenTelemetry SDK for JavaScript as a client of the receiver: JSON, protobuf or gRPC.
const { createRequire } = require("node:module");
const need = createRequire(process.env.MODULES);
const { trace, context, SpanStatusCode } = need("@opentelemetry/api");
const { NodeTracerProvider, BatchSpanProcessor } = need("@opentelemetry/sdk-trace-node");
const { detectResources, envDetector } = need("@opentelemetry/resources");
const { OTLPTraceExporter } = need(`@opentelemetry/exporter-trace-otlp-${process.env.PROTOCOL}`);

const provider = new NodeTracerProvider({
  resource: detectResources({ detectors: [envDetector] }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
provider.register();
const tracer = trace.getTracer("app");
const { SESSION, CANARY_PROMPT, CANARY_ARGUMENTS, CANARY_RESULT, CANARY_ANSWER } = process.env;

const agent = tracer.startSpan("invoke_agent forecaster", {
  attributes: { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "forecaster", "gen_ai.conversation.id": SESSION },
});
const inside = trace.setSpan(context.active(), agent);
function chat(finish) {
  const span = tracer.startSpan(`chat ${CANARY_PROMPT}`, {
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.request.model": "stub-model",
      "gen_ai.usage.input_tokens": 120,
      "gen_ai.usage.cache_read.input_tokens": 100,
      "gen_ai.usage.output_tokens": 12,
      "gen_ai.response.finish_reasons": [finish],
      "gen_ai.response.time_to_first_chunk": 0.25,
      "gen_ai.input.messages": CANARY_PROMPT,
      "gen_ai.output.messages": CANARY_ANSWER,
    },
  }, inside);
  span.addEvent("gen_ai.client.inference.operation.details", { "gen_ai.input.messages": CANARY_PROMPT });
  span.end();
}
chat("tool_calls");
const tool = tracer.startSpan("execute_tool weather", {
  attributes: {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "weather",
    "gen_ai.tool.call.id": "call_0",
    "gen_ai.tool.call.arguments": CANARY_ARGUMENTS,
    "gen_ai.tool.call.result": CANARY_RESULT,
  },
}, inside);
tool.recordException(new Error(CANARY_RESULT));
tool.setStatus({ code: SpanStatusCode.ERROR, message: CANARY_RESULT });
tool.end();
chat("stop");
agent.end();
provider.shutdown().then(() => process.exit(0), () => process.exit(1));
