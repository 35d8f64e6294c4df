"""The words of verdicts and answers: one of each, and none that figures do not allow."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.pages import MAIN
from tests.measures.test_verdict import S, figures
from turnscope.measures.verdict import RULES, Owner, Verdict
from turnscope.model import Figures
from turnscope_app import advice, answers, cards


def test_every_verdict_has_its_words_its_owner_and_a_page() -> None:
    assert set(advice.ADVICE) == set(Verdict)
    assert set(advice.OWNERS) == set(Owner) == {rule.owner for rule in RULES}
    for said in advice.ADVICE.values():
        assert said.title[0].isupper()
        assert said.step.endswith(".")
        assert said.why(figures()).endswith(".")
        assert MAIN.with_name("views").joinpath(f"{said.page}.py").exists()


def test_nothing_is_said_of_no_data_but_that_it_is_unknown() -> None:
    for sentence in (answers.time(Figures()), answers.repeated(Figures()), answers.ceiling(Figures())):
        assert "unknown" in sentence
    assert answers.reuse_answer(Figures()).short == "Unknown"
    assert advice.warnings(Figures()) == []
    assert {card.value for card in cards.reuse(Figures())} == {"not measured"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"judged_turns": 0, "free_ns": None}, "How much input was read twice is unknown"),
        ({"recomputed_tokens": 0}, "**No input was read twice** where it could be judged (40 of 40 turns could be"),
        (
            {"recomputed_tokens": 9, "prompt_tokens": 100, "free_ns": 20 * S, "fetched_ns": 10 * S},
            "**9 % of the input was read again** although it had been read before (9 tokens, recomputed): that took 10 "
            "% of session time, of which fetching it back could have saved 50 %.",
        ),
        (
            {"recomputed_tokens": 9, "prompt_tokens": 100, "unjudged_turns": 1},
            "**At least 9 % of the input was read again** although it had been read before (9 tokens, recomputed). "
            "What that cost is unknown",
        ),
    ],
)
def test_how_much_was_read_twice_is_said_as_far_as_it_is_known(changes: dict[str, Any], said: str) -> None:
    assert answers.repeated(figures(**changes)).startswith(said)


def test_what_reuse_gives_at_best_is_told_with_its_range_and_what_is_assumed() -> None:
    best = figures(fetched_ns=4 * S, fetched_low_ns=0, fetched_high_ns=6 * S, assumed=True)
    assert answers.ceiling(best) == (
        "**At best, more reuse makes sessions 2 % shorter** (4 % of the time in which nobody waits for a person): 4.00 "
        "s in all, between nothing and 6.00 s, partly assuming what a fetch takes."
    )
    assert answers.ceiling(figures()).startswith("**More reuse cannot make sessions shorter**")


def test_where_time_goes_that_no_reuse_shortens_is_said_with_a_no() -> None:
    assert answers.reuse_answer(figures()).why.endswith("goes into writing the answer, which no reuse shortens.")
    reading = figures(input_processing_ns=90 * S)
    assert "no reuse" not in answers.reuse_answer(reading).why


def test_what_did_not_change_is_neither_good_nor_bad() -> None:
    changes = {change.label: change.delta for change in cards.changes(figures(sessions=20), figures())}
    assert changes["Sessions"] == "+100 %"
    assert changes["Writing the answer"] == "+0 points"
