"""What these data cover, who reported them, what is unknown, and what every word means."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from turnscope_app import about_frames, controls, data, frames, narrowing, period_data, tables, text, words

store = data.store()
whole = data.totals(store)

controls.head("About this data", page="about")
st.markdown(
    "turnscope watches vLLM servers of which some **read prompts** (prefill) and others **write answers** (decode). "
    "When an answer is done, the server that wrote it can keep its memory (a hold), so that the session's next turn "
    "can "
    "**fetch it back** instead of computing it again. These pages show, turn by turn, whether that worked, and why not."
)
st.caption("Store")
st.text(text.harmless(store.url, 300))
if whole.turns == 0:
    controls.nothing_yet()
narrowed = narrowing.bar(store, whole, page="about")
totals = period_data.totals(store, narrowed.asked)
if not totals.turns:
    controls.nothing_here()
counts = period_data.counts(store, narrowed.asked, fates=False)
found, reporting = period_data.processes(store)
processes = found.to_pylist()
st.markdown(
    f"{text.turns(totals.turns)}: {text.turns(totals.turns - totals.unattributed_turns)} in "
    f"{text.sessions(totals.sessions)}, and {text.turns(totals.unattributed_turns)} without a session id; "
    f"from {text.when(totals.first_ns)} to {text.when(totals.last_ns)}."
)
tables.cards(about_frames.cards(totals, counts, processes), page="about")

st.subheader("What is measured, and what is not", anchor=False)
st.caption("Not measured is shown as such, and is never counted as 0. Inferred is said to be inferred.")
tables.read(about_frames.coverage(totals, counts))

st.subheader("Who reported", anchor=False)
if processes:
    st.caption(" ".join(about_frames.versions(processes)))
    silent = about_frames.silent(processes)
    if silent:
        st.warning(
            f"For more than 10 minutes, while others reported, nothing came from: "
            f"{text.escaped(text.listed(silent, 12))}. "
            "What they did since is missing here. `turnscope doctor` says what to look at.",
            icon=":material/sensors_off:",
        )
    tables.show(
        frames.of(processes, about_frames.PROCESSES), about_frames.PROCESSES, key="about_processes", pinned="part"
    )
    st.caption(f"{text.shown_of(len(processes), reporting, 'row')} Of the whole store, whatever the period.")
    controls.download(found, "processes", page="about")
else:
    st.info(
        "This store does not say which processes reported: it was imported, or written by an older turnscope. A "
        "running `turnscope serve` keeps them from now on.",
        icon=":material/help:",
    )


def vocabulary(
    title: str, known: Mapping[str, words.Word], found: dict[str, int], total: int, what: str, note: str = ""
) -> None:
    """The words of a closed vocabulary, those that occur first."""
    st.subheader(title, anchor=False)
    if note:
        st.caption(note)
    seen = {value: word for value, word in known.items() if value in found}
    if seen:
        tables.read(frames.vocabulary(seen, found, total, what))
    with st.expander("Words that occur nowhere here" if seen else "None occurs here. The words"):
        tables.read(frames.vocabulary({v: w for v, w in known.items() if v not in found}, {}, total, what))


vocabulary("Where reused prompt tokens came from (path)", words.PATHS, counts.by_path, totals.turns, "Turns")
vocabulary("Why no more was fetched back (reason)", words.REASONS, counts.by_reason, totals.turns, "Turns")
vocabulary(
    "Evidence that an answer may be wrong (suspicion)",
    words.SUSPICIONS,
    counts.by_suspicion,
    totals.turns,
    "Turns",
    "Suspicions are kept apart from failures: the engine reported success for these turns.",
)
# Last: every turn is looked at beside the next one for it.
held = period_data.counts(store, narrowed.asked, fates=True)
vocabulary(
    "What became of kept memory (hold outcome)",
    words.FATES,
    held.by_hold_fate,
    held.holds,
    "Holds",
    "The engine's outcome ttl has several meanings: they are told apart by whether a later turn came.",
)
