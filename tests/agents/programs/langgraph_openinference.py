"""LangGraph, through OpenInference's instrumentation of LangChain."""

from common import QUESTION, SESSION, provider, weather

tracing = provider()

from langchain_openai import ChatOpenAI  # noqa: E402
from langgraph.prebuilt import create_react_agent  # noqa: E402
from openinference.instrumentation import using_session  # noqa: E402
from openinference.instrumentation.langchain import LangChainInstrumentor  # noqa: E402

LangChainInstrumentor().instrument(tracer_provider=tracing)
agent = create_react_agent(
    ChatOpenAI(model="stub-model", streaming=True, stream_usage=True), [weather], name="forecaster"
)
with using_session(SESSION):
    agent.invoke({"messages": [("user", QUESTION)]}, {"configurable": {"thread_id": SESSION}})
tracing.force_flush()
tracing.shutdown()
