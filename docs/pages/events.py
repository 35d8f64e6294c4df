"""docs/events.md."""

from __future__ import annotations

import textwrap

from docs.pages.markdown import HEAD, field_docs, table
from turnscope import model, semconv
from turnscope.decode import codec
from turnscope.decode.table import attributes


def page() -> str:
    """Every event and resource attribute the hooks can send: the allowlist of what can enter the sidecar."""
    docs = field_docs(model.sources) | field_docs(model.events)
    out = [
        HEAD,
        "# Events\n\n"
        "What the hooks send: OTLP log records, the event's name in `event_name` and again in the attribute "
        "`event.name`. This table is also the allowlist: an attribute that is not in it is dropped when it arrives, "
        "before anything is stored. No prompt, token id or tool content is among them. Strings longer than "
        f"{semconv.MAX_TEXT} characters are cut and end in a hash; lists longer than {codec.MAX_LIST} are cut.\n\n"
        "Every record also carries `turnscope.seq` (int: numbered per emitter from 1, before any drop) and "
        "`turnscope.mono_ns` (int: the process's monotonic clock). `None` and defaults are left out. The record's "
        "`trace_id` is its turn's or its hold's, so that a collector can shard by it.\n",
    ]
    sections: list[tuple[str, type[model.Body] | type[model.Emitter] | type[model.Engine]]] = [
        ("Resource attributes: the emitter", model.Emitter),
        ("Resource attributes: the engine", model.Engine),
        *((f"`{body.EVENT}`", body) for body in model.BODIES),
    ]
    for title, struct in sections:
        rows = []
        for attribute in attributes(struct):
            name, _, part = attribute.field.partition(".")
            texts = [docs[struct.__name__].get(name, ""), docs["Handle"].get(part, "")]
            rows.append((f"`{attribute.key}`", attribute.kind, " ".join(t for t in texts if t)))
        intro = textwrap.dedent(struct.__doc__ or "").replace("``", "`").strip()
        out.append(f"\n## {title}\n\n{intro}\n\n{table(('attribute', 'type', 'what'), rows)}")
    return "".join(out)
