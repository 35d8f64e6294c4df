"""Every word of the closed vocabularies has plain words and a sentence, and foreign text is made harmless."""

from __future__ import annotations

import itertools
import pathlib
import re
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnscope.semconv import DIVERGENCES, Divergence, HoldOutcome, Part, Path, Reason, Status, Suspicion, TokenSource
from turnscope.store.fates import Fate
from turnscope_app import (
    about_frames,
    because,
    columns,
    fields,
    retention_frames,
    reuse_frames,
    suspicion_frames,
    text,
    tool_frames,
    words,
)


@pytest.mark.parametrize(
    ("vocabulary", "table"),
    [
        (Path, words.PATHS),
        (Reason, words.REASONS),
        (Suspicion, words.SUSPICIONS),
        (Fate, words.FATES),
        (Status, words.STATUSES),
        (TokenSource, words.SOURCES),
        (Part, words.PARTS),
    ],
)
def test_every_word_has_a_story_and_no_other_has(vocabulary: type[StrEnum], table: dict[str, words.Word]) -> None:
    assert set(table) == set(vocabulary)
    for word in table.values():
        assert word.plain[0].isupper()
        assert word.story[0].isupper()
        assert word.story.endswith(".")
    assert len({word.plain for word in table.values()}) == len(table)


def test_every_kind_of_divergence_has_its_words() -> None:
    assert set(DIVERGENCES) == set(Divergence)


@pytest.mark.parametrize(
    "table", [words.PATHS, words.REASONS, words.SUSPICIONS, words.STATUSES, words.SOURCES, words.PARTS]
)
def test_every_word_names_its_value_in_metrics_and_traces(table: dict[str, words.Word]) -> None:
    assert {word.value for word in table.values()} == {str(value) for value in table}


def test_every_fate_names_the_holds_outcome_in_metrics_and_traces() -> None:
    for fate, word in words.FATES.items():
        assert word.value == fate or (word.value == HoldOutcome.TTL and fate not in set(HoldOutcome))


def test_no_plain_word_is_an_engines_own_word_but_a_handle_that_is_explained() -> None:
    tables = (words.PATHS, words.REASONS, words.SUSPICIONS, words.FATES, words.SOURCES, words.PARTS, words.INPUT)
    plain = [word.plain.lower().split() for table in tables for word in table.values()]
    assert not {"kv", "blocks", "block", "hold", "cache", "inferred"} & set(itertools.chain(*plain))
    no_handle = words.REASONS[Reason.NO_HANDLE_FROM_DECODE]
    assert "what a next turn asks for the memory by" in no_handle.story


def test_the_newcomers_word_comes_first_and_the_engines_second() -> None:
    assert words.PATHS[Path.REVERSE_FETCH].shown == "Fetched back (reverse fetch)"
    assert words.PATHS[Path.UNKNOWN].shown == "Unknown"


def test_an_engine_is_called_an_engine_and_never_a_worker_which_is_one_of_its_processes() -> None:
    folder = pathlib.Path(words.__file__).parent
    for path in [*folder.rglob("*.py"), *folder.rglob("*.html")]:
        text = " ".join(re.sub(r'"\s*\n\s*"', "", path.read_text()).split())
        assert re.findall(r"(?i)(?:prefill|decode) workers?", text) == [], path.name


def test_a_value_from_a_newer_turnscope_is_shown_as_it_is() -> None:
    assert words.shown(words.REASONS, "brand_new") == "brand new"
    assert words.shown(words.REASONS, None) is None


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (None, "not measured"),
        (0, "0 µs"),
        (850_000, "850 µs"),
        (12_340_000, "12.3 ms"),
        (1_250_000_000, "1.25 s"),
        (125_000_000_000, "2 min 05 s"),
        (7_500_000_000_000, "2 h 05 min"),
    ],
)
def test_a_duration_has_the_unit_that_reads_best(ns: int | None, shown: str) -> None:
    assert text.duration(ns) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "not measured"), (0, "0 B"), (999, "999 B"), (786_432, "786.4 kB"), (2**60, "1152921.5 TB")],
)
def test_a_size_has_decimal_prefixes(value: int | None, shown: str) -> None:
    assert text.size(value) == shown


def test_a_share_of_nothing_or_of_the_unmeasured_is_not_measured() -> None:
    assert text.share(0, 200) == "0 %"
    assert text.share(50, 200) == "25 %"
    assert {text.share(None, 200), text.share(1, None), text.share(0, 0)} == {"not measured"}


def test_a_share_is_0_or_100_percent_only_of_none_or_all() -> None:
    assert (text.share(1, 10_000), text.share(0, 10_000)) == ("under 1 %", "0 %")
    assert (text.share(9_999, 10_000), text.share(10_000, 10_000)) == ("over 99 %", "100 %")
    assert text.part(1_250, 2_500) == "1,250\N{NO-BREAK SPACE}(50\N{NO-BREAK SPACE}%)"


@given(st.dictionaries(st.integers(0, 9), st.integers(0, 10**15), min_size=1, max_size=8))
def test_shares_of_a_whole_sum_to_100_and_none_is_off_by_a_whole_percent(parts: dict[int, int]) -> None:
    said = text.shares(parts)
    whole = sum(parts.values())
    if not whole:
        assert set(said.values()) == {"not measured"}
        return
    ends = {"under 1 %": "0 %", "over 99 %": "100 %"}
    shown = {key: int(ends.get(value, value).removesuffix(" %")) for key, value in said.items()}
    assert sum(shown.values()) == 100
    assert all(abs(shown[key] - 100 * part / whole) < 1 for key, part in parts.items())
    assert all((said[key] == "0 %") == (part == 0) for key, part in parts.items())


def test_times_are_utc_and_absurd_ones_say_so() -> None:
    assert text.when(1_796_040_000_000_000_000) == "2026-11-30 12:00:00 UTC"
    assert text.when(2**63 * 1_000) == "a time outside the calendar"
    assert text.when(None) == "not measured"


@pytest.mark.parametrize(
    ("session_id", "shown"),
    [
        (None, "Turns without a session id"),
        ("", "Turns without a session id"),
        ("plain-1", "plain-1"),
        ("<b>x</b>", "<b>x</b>"),
        ("a\u202egnp.exe", "a\\u202egnp.exe"),
        ("line\nbreak\x00", "line\\u000abreak\\u0000"),
        ("שלום", "שלום"),
        ("x" * 10_000, "x" * 80 + "… (10,000 characters)"),
    ],
)
def test_a_session_id_is_shown_harmlessly(session_id: str | None, shown: str) -> None:
    assert text.session(session_id) == shown


def test_markdown_in_foreign_text_means_nothing() -> None:
    assert text.escaped("[a](http://x) **b** <i> :smile: $x$") == (
        r"\[a\]\(http\://x\) \*\*b\*\* \<i\> \:smile\: \$x\$"
    )


def test_counts_say_how_many_of_how_many() -> None:
    assert text.shown_of(3, 3, "session") == "3 sessions."
    assert text.shown_of(1, 1, "turn") == "1 turn."
    assert text.shown_of(1000, 4000, "turn") == "1,000 of 4,000 turns are shown."


ENGINES_OWN = re.compile(r"\b(prefill|decode|holds?|KV|blocks?)\b", re.IGNORECASE)
"""Words of the engine that a newcomer does not know."""
BEHIND = re.compile(r"\([^()]*\)|`[^`]*`|\b\w*_\w+\b")
"""Where they may stand: in brackets behind the plain ones, and in names of settings."""
TABLES = (
    columns.SESSIONS,
    columns.APPLICATIONS,
    fields.TURNS,
    *((*group.listed, *group.more) for group in fields.GROUPS),
    about_frames.PROCESSES,
    retention_frames.GAPS,
    retention_frames.FATES,
    reuse_frames.AVOIDABLE,
    reuse_frames.ENGINES,
    reuse_frames.WORST,
    suspicion_frames.LISTED,
    tool_frames.TOOLS,
    tool_frames.APPLICATIONS,
    tool_frames.BY_TURN,
    tool_frames.BY_PROMPT,
)
VOCABULARIES = (
    words.PATHS,
    words.REASONS,
    words.SUSPICIONS,
    words.FATES,
    words.STATUSES,
    words.PARTS,
    words.INPUT,
    words.SOURCES,
)
EXPLAINED = {
    *(column.help for table in TABLES for column in table),
    *(word.story for vocabulary in VOCABULARIES for word in vocabulary.values()),
    *(word.plain for vocabulary in VOCABULARIES for word in vocabulary.values()),
    *because.CLAUSES.values(),
    *suspicion_frames.STEPS.values(),
}


@pytest.mark.parametrize("said", sorted(EXPLAINED))
def test_what_explains_something_says_it_in_plain_words_first(said: str) -> None:
    assert ENGINES_OWN.findall(BEHIND.sub("", said)) == []
