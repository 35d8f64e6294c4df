"""docs/importers.md."""

from __future__ import annotations

import msgspec

from docs.pages.markdown import HEAD, field_docs, table
from turnscope import model
from turnscope.decode.imports.kinds import KINDS, RUNS

_INTRO = """# Importers

`turnscope import KIND FILE...` puts what other tools wrote down into the store, beside what hooks tell, also while
`turnscope serve` writes there. Files may be gzipped and of any length: they are streamed.

- **Nothing is made up.** What a file does not tell is absent. `timing` of a span says how its start and end are known:
  `measured` around the operation itself; `inferred` from when lines of a log were written, an upper bound;
  `unknown`: it only stood there.
- **Nothing is kept of prompts, answers and what tools were given or said**: only the fields below are decoded.
- **Once.** Keys are made from the file's own ids: importing it again adds nothing, and a file that has grown completes
  what was cut short.
- **Broken lines** are counted, named by number and left out; the rest is kept. Exit code 0: all was imported, 1: some
  was left out, 2: nothing was (another kind of file, nothing of a session in it, a store that cannot be written).
"""
_RUNS = """
## Two runs side by side

The published benchmark of bidirectional KV transfer left three files a run: the client's statistics, the proxy's log
and P's log. Each run is imported under a name, and two are held side by side: the time to the first token against
prompt length, and prefills split into transfer and the rest.

```
turnscope import published-benchmark on.json on-proxy.log on-prefill.log --run on
turnscope import published-benchmark off.json off-proxy.log off-prefill.log --run off
turnscope compare on off
```

The files share no request id. The n-th prefill of a conversation in the proxy's log is that of its n-th turn (`join` is
`inferred`); P's log counts reads in intervals of ten seconds, which are shared out in order among the prefills that had
a handle, if they come out even. Where they do not, the command says so and the times stay unknown. The proxy's log
dates the run, its zone taken for UTC; its time to the first token is the client's and not the proxy's.
"""


def page() -> str:
    """What can be imported, and what each kind gives and lacks; tests hold it against what the importers fill."""
    docs = field_docs(model.spans) | field_docs(model.facts)
    out = [HEAD, _INTRO]
    for kind in KINDS.values():
        row = model.Turn if kind.name in RUNS else model.AgentSpan
        fields = [
            (f"`{field.name}`", docs[row.__name__].get(field.name, ""))
            for field in msgspec.structs.fields(row)
            if field.name in kind.gives
        ]
        what = "turns of a run" if row is model.Turn else "spans of sessions"
        out.append(
            f"\n## `{kind.name}`\n\nTakes {kind.files}; gives {what}.\n\n- Times: {kind.timing}.\n"
            f"- Not in it: {kind.lacks}.\n\n{table(('gives', 'what'), fields)}"
        )
    return "".join([*out, _RUNS])
