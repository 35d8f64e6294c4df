"""CrewAI, through OpenInference, and the client that it calls models with as well."""

import os

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["CREWAI_DISABLE_TRACKING"] = "true"

from common import QUESTION, SESSION, provider
from common import weather as tell

tracing = provider()

from crewai import LLM, Agent, Crew, Task  # noqa: E402
from crewai.tools import tool  # noqa: E402
from openinference.instrumentation import using_session  # noqa: E402
from openinference.instrumentation.crewai import CrewAIInstrumentor  # noqa: E402
from openinference.instrumentation.openai import OpenAIInstrumentor  # noqa: E402

CrewAIInstrumentor().instrument(tracer_provider=tracing)
OpenAIInstrumentor().instrument(tracer_provider=tracing)


@tool("weather")
def weather(place: str) -> str:
    """Tells the weather of a place."""
    return tell(place)


agent = Agent(
    role="forecaster", goal="Answer.", backstory="Knows.", tools=[weather], llm=LLM(model="openai/gpt-4o-mini")
)
task = Task(description=QUESTION, expected_output="A sentence.", agent=agent)
with using_session(SESSION):
    Crew(agents=[agent], tasks=[task]).kickoff()
tracing.force_flush()
tracing.shutdown()
