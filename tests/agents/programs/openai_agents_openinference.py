"""OpenAI Agents SDK, through OpenInference."""

from common import QUESTION, SESSION, provider, weather

tracing = provider()

from openinference.instrumentation import using_session  # noqa: E402
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor  # noqa: E402

from agents import (  # noqa: E402
    Agent,
    AsyncOpenAI,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    function_tool,
)

OpenAIAgentsInstrumentor().instrument(tracer_provider=tracing)
model = OpenAIChatCompletionsModel(model="stub-model", openai_client=AsyncOpenAI())
agent = Agent(name="forecaster", instructions="Answer.", tools=[function_tool(weather)], model=model)
with using_session(SESSION):
    Runner.run_sync(agent, QUESTION, run_config=RunConfig(group_id=SESSION))
tracing.force_flush()
tracing.shutdown()
