"""What these data cover, what is unknown, and what every word means."""

from __future__ import annotations

import streamlit as st

from turnscope_app import columns, data, frames, tables, text, words

url = data.store_url()
totals = data.totals(url)

st.title("About these data")
st.markdown(
    "turnscope watches vLLM engines that split **prefill** (reading the prompt) and **decode** (writing the answer). "
    "When an answer is done, the decode worker can keep its memory (a **hold**), so that the session's next turn can "
    "**fetch it back** instead of computing it again. These pages show, turn by turn, whether that worked, and why not."
)
st.caption("Store")
st.code(url, language=None)
if totals.turns == 0:
    st.info("The store has no turns yet: there is nothing to describe.", icon=":material/hourglass_empty:")
    st.stop()
st.markdown(
    f"{text.turns(totals.turns)} in {text.count(totals.sessions)} sessions, "
    f"from {text.when(totals.first_ns)} to {text.when(totals.last_ns)}."
)

st.subheader("What is measured, and what is not", anchor=False)
st.caption("Not measured is shown as such, and is never counted as 0. Inferred is said to be inferred.")
tables.draw(frames.coverage(totals), columns.COVERAGE, key="about_coverage")

st.subheader("Where reused prompt tokens came from (path)", anchor=False)
tables.draw(frames.vocabulary(words.PATHS, totals.by_path, totals.turns), columns.WORDS, key="about_paths")
st.subheader("Why no more was fetched back (reason)", anchor=False)
tables.draw(
    frames.vocabulary(words.REASONS, totals.by_reason, totals.turns), columns.WORDS, tall=True, key="about_reasons"
)
st.subheader("Evidence that an answer may be wrong (suspicion)", anchor=False)
st.caption("Suspicions are kept apart from failures: the engine reported success for these turns.")
tables.draw(
    frames.vocabulary(words.SUSPICIONS, totals.by_suspicion, totals.turns),
    columns.WORDS,
    tall=True,
    key="about_suspicions",
)
st.subheader("What became of kept blocks (hold outcome)", anchor=False)
tables.draw(
    frames.vocabulary(
        words.HOLD_OUTCOMES | {words.STILL_HELD.term: words.STILL_HELD}, totals.by_hold_outcome, totals.holds
    ),
    columns.HOLDS,
    key="about_holds",
)
