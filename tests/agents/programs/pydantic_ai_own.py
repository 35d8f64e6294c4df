"""pydantic-ai, with its own instrumentation."""

import asyncio

from common import QUESTION, SESSION, provider, weather

tracing = provider()

from opentelemetry import trace  # noqa: E402
from pydantic_ai import Agent  # noqa: E402
from pydantic_ai.models.instrumented import InstrumentationSettings  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel  # noqa: E402

Agent.instrument_all(InstrumentationSettings(include_content=True))
agent = Agent(OpenAIChatModel("stub-model"), name="forecaster", tools=[weather])


async def run() -> None:
    with trace.get_tracer("app").start_as_current_span("request"):
        async with agent.run_stream(QUESTION, conversation_id=SESSION) as answer:
            await answer.get_output()


asyncio.run(run())
tracing.force_flush()
tracing.shutdown()
