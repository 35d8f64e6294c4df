"""The instrumentations that are tried, how each is run, and what it gives of one small session."""

from __future__ import annotations

from typing import Final

import msgspec

from tests.agents import setup

ASKED: Final = (
    "session",
    "model calls",
    "tools",
    "names of agents",
    "tokens",
    "cached tokens",
    "time to first token",
    "tool calls asked",
)
"""What can be given, as columns."""


class Instrumentation(msgspec.Struct, frozen=True, kw_only=True):
    """One way to send spans."""

    title: str
    program: str
    environment: str
    session: str
    """The attribute or the way in which the application sets it."""
    variables: dict[str, str] = {}
    tools: bool = True
    """Its spans tell of tools."""
    agents: bool = True
    cached: bool = True
    first_token: bool = False
    asked: bool = True
    """How many tools an answer asked for."""
    content_in_logs: bool = False
    """And not in its spans."""
    remark: str = ""


PYTHON: Final = (
    Instrumentation(
        title="OpenAI Agents SDK, OpenInference",
        program="openai_agents_openinference.py",
        environment="agents",
        session="`using_session(ID)` sets `session.id`",
        cached=False,
    ),
    Instrumentation(
        title="pydantic-ai, its own",
        program="pydantic_ai_own.py",
        environment="agents",
        session="`agent.run(.., conversation_id=ID)` sets `gen_ai.conversation.id`",
        first_token=True,
        asked=False,
        remark="without `conversation_id` each run is a session of its own",
    ),
    Instrumentation(
        title="LangGraph, OpenInference",
        program="langgraph_openinference.py",
        environment="agents",
        agents=False,
        session="`using_session(ID)` sets `session.id`",
        remark="`thread_id` alone is in `metadata`, which is not read",
    ),
    Instrumentation(
        title="CrewAI, OpenInference",
        program="crewai_openinference.py",
        environment="crewai",
        session="`using_session(ID)` sets `session.id`",
        remark="model calls come from the instrumentation of the client (here OpenAI's), beside CrewAI's",
    ),
    Instrumentation(
        title="OpenLLMetry (Traceloop SDK)",
        program="openllmetry.py",
        environment="agents",
        session="`Traceloop.set_association_properties({'session_id': ID})`",
        first_token=True,
        asked=False,
        remark="tools and agents are the functions decorated so",
    ),
    Instrumentation(
        title="OpenTelemetry, OpenAI client",
        program="openai_otel.py",
        environment="agents",
        session="`gen_ai.conversation.id` on a span of the application's around the calls",
        tools=False,
        agents=False,
        cached=False,
        asked=False,
        content_in_logs=True,
        remark="content goes into log records, which are ignored",
    ),
)
JAVASCRIPT: Final = tuple(
    Instrumentation(
        title=f"OpenTelemetry JS SDK, {name}",
        program="otel_js.js",
        environment=setup.JS,
        session="`gen_ai.conversation.id`, set by hand",
        variables={"PROTOCOL": protocol},
        first_token=True,
        asked=False,
        remark="spans written by hand after the conventions",
    )
    for protocol, name in (("http", "JSON"), ("proto", "protobuf"), ("grpc", "gRPC"))
)
ALL: Final = (*PYTHON, *JAVASCRIPT)


def gives(one: Instrumentation) -> dict[str, bool]:
    """Whether it gives each of ``ASKED``."""
    told = (True, True, one.tools, one.agents, True, one.cached, one.first_token, one.asked)
    return dict(zip(ASKED, told, strict=True))


def table() -> str:
    """As Markdown, for docs/agents.md."""
    columns = ("instrumentation", *ASKED[1:], "session id", "remark")
    lines = [columns, ["---"] * len(columns)]
    for one in ALL:
        given = ("yes" if gives(one)[asked] else "no" for asked in ASKED[1:])
        lines.append([one.title, *given, one.session, one.remark])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    print(table(), end="")  # noqa: T201
