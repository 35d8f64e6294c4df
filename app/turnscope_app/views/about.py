"""What these data cover, what is unknown, and what every word means."""

from __future__ import annotations

import streamlit as st

from turnscope_app import data, frames, tables, text, words

store = data.store()
totals = data.totals(store)

st.title("About these data")
st.markdown(
    "turnscope watches vLLM engines that split **prefill** (reading the prompt) and **decode** (writing the answer). "
    "When an answer is done, the decode worker can keep its memory (a **hold**), so that the session's next turn can "
    "**fetch it back** instead of computing it again. These pages show, turn by turn, whether that worked, and why not."
)
st.caption("Store")
st.text(store.url)
if totals.turns == 0:
    st.info("The store has no turns yet: there is nothing to describe.", icon=":material/hourglass_empty:")
    st.stop()
st.markdown(
    f"{text.turns(totals.turns)}: {text.turns(totals.turns - totals.unattributed_turns)} in "
    f"{text.count(totals.sessions)} sessions, and {text.turns(totals.unattributed_turns)} without a session id; "
    f"from {text.when(totals.first_ns)} to {text.when(totals.last_ns)}."
)

st.subheader("What is measured, and what is not", anchor=False)
st.caption("Not measured is shown as such, and is never counted as 0. Inferred is said to be inferred.")
counts = data.counts(store)
tables.read(frames.coverage(totals, counts))

for title, note, vocabulary, found, total, what in (
    ("Where reused prompt tokens came from (path)", "", words.PATHS, counts.by_path, totals.turns, "Turns"),
    ("Why no more was fetched back (reason)", "", words.REASONS, counts.by_reason, totals.turns, "Turns"),
    (
        "Evidence that an answer may be wrong (suspicion)",
        "Suspicions are kept apart from failures: the engine reported success for these turns.",
        words.SUSPICIONS,
        counts.by_suspicion,
        totals.turns,
        "Turns",
    ),
    (
        "What became of kept blocks (hold outcome)",
        "The engine's outcome ttl has several meanings: they are told apart by whether a later turn came.",
        words.FATES,
        counts.by_hold_fate,
        counts.holds,
        "Holds",
    ),
):
    st.subheader(title, anchor=False)
    if note:
        st.caption(note)
    seen = {value: word for value, word in vocabulary.items() if value in found}
    if seen:
        tables.read(frames.vocabulary(seen, found, total, what))
    with st.expander("Words that occur nowhere in this store" if seen else "None occurs in this store. The words"):
        tables.read(frames.vocabulary({v: w for v, w in vocabulary.items() if v not in found}, {}, total, what))
