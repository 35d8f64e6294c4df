"""An agent written by hand on OpenAI's client: asks, runs the tools asked for, asks again."""

import json

from common import QUESTION, weather
from openai import OpenAI

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather of a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}


def run(call_tool=weather) -> None:
    """Once through; the second answer streamed."""
    client = OpenAI()
    messages = [{"role": "user", "content": QUESTION}]
    first = client.chat.completions.create(model="stub-model", messages=messages, tools=[TOOL]).choices[0].message
    messages.append(first.model_dump(exclude_none=True))
    for call in first.tool_calls:
        told = call_tool(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
    stream = client.chat.completions.create(
        model="stub-model", messages=messages, tools=[TOOL], stream=True, stream_options={"include_usage": True}
    )
    for _ in stream:
        pass
