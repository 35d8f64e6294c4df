"""The words of verdicts and answers: one of each, and none that figures do not allow."""

from __future__ import annotations

import itertools
import re

import pytest

from tests.app.pages import MAIN
from tests.measures.test_verdict import S, figures
from turnscope.measures.verdict import Verdict
from turnscope.model import Figures
from turnscope_app import advice, answers, cards, part_charts
from turnscope_app.advice import Owner


def test_every_verdict_has_its_words_its_owner_and_a_page() -> None:
    assert set(advice.ADVICE) == set(Verdict)
    every = [action for said in advice.ADVICE.values() for action in said.actions]
    assert set(advice.OWNERS) == set(Owner) == {action.owner for action in every}
    for said in advice.ADVICE.values():
        assert said.title[0].isupper()
        assert all(action.said.endswith(".") for action in said.actions)
        assert len({action.owner for action in said.actions}) == len(said.actions) > 0
        assert said.why(figures()).endswith(".")
        assert MAIN.with_name("views").joinpath(f"{said.page}.py").exists()


def test_nothing_is_said_of_no_data_but_that_it_is_unknown() -> None:
    for sentence in (answers.time(Figures()), answers.repeated(Figures()), answers.ceiling(Figures())):
        assert "unknown" in sentence
    assert answers.reuse_answer(Figures()).short == "Unknown"
    assert advice.warnings(Figures()) == []
    assert {card.value for card in cards.reuse(Figures())} == {"not measured"}


_AGAIN = "although it had been read before (9 tokens, recomputed)."


@pytest.mark.parametrize(
    ("tokens", "prompt", "unjudged", "said"),
    [
        (None, None, 0, "How much input was read twice is unknown: no turn told what it computed again."),
        (0, 100, 0, "**No input was read twice** where it could be judged (40 of 40 turns could be judged)."),
        (9, 100, 0, f"**9 % of the input was read again** {_AGAIN}"),
        (9, 1_000, 0, f"**1 % of the input was read again** {_AGAIN}"),
        (9, 5_000, 0, f"**Under 1 % of the input was read again** {_AGAIN}"),
        (9, 100, 1, f"**At least 9 % of the input was read again** {_AGAIN}"),
        (9, 5_000, 1, f"**Some of the input was read again** {_AGAIN}"),
        (9, None, 0, f"**Some of the input was read again** {_AGAIN}"),
    ],
)
def test_how_much_was_read_twice_is_said_as_far_as_it_is_known(
    tokens: int | None, prompt: int | None, unjudged: int, said: str
) -> None:
    known = figures(recomputed_tokens=tokens, prompt_tokens=prompt, unjudged_turns=unjudged, free_ns=20 * S)
    assert answers.repeated(known).startswith(said)


_TOOK = "That took 20 % of the agents' working time"
_UNKNOWN = "What that cost is unknown: no engine was measured often enough."
_MEANWHILE = "That made no session longer: something else took longer meanwhile."


@pytest.mark.parametrize(
    ("free_s", "fetched_s", "unjudged", "said"),
    [
        (None, None, 0, _UNKNOWN),
        (None, None, 1, _UNKNOWN),
        (0, 0, 0, _MEANWHILE),
        (0, 0, 1, _UNKNOWN),
        (0, None, 0, _MEANWHILE),
        (
            20,
            None,
            0,
            f"{_TOOK}; how much of it fetching would have saved is unknown.",
        ),
        (20, 0, 0, f"{_TOOK}, and fetching it back would have taken no less."),
        (20, 10, 0, f"{_TOOK}, and fetching it back would have saved 50 % of that."),
        (20, 10, 1, f"{_TOOK}, and fetching it back would have saved 50 % of that."),
        (1, 1, 0, "That took 1 % of the agents' working time, and fetching it back would have saved 100 % of that."),
    ],
)
def test_what_reading_twice_cost_is_said_as_far_as_it_is_known(
    free_s: int | None, fetched_s: int | None, unjudged: int, said: str
) -> None:
    costs = {name: None if s is None else s * S for name, s in (("free_ns", free_s), ("fetched_ns", fetched_s))}
    told = answers.repeated(figures(recomputed_tokens=9, prompt_tokens=100, unjudged_turns=unjudged, **costs))
    assert told.endswith(said)


def test_what_is_only_partly_timed_says_of_how_many_tokens_it_speaks() -> None:
    partly = figures(
        recomputed_tokens=13_330, judged_tokens=4_850, prompt_tokens=100_000, free_ns=20 * S, fetched_ns=10 * S
    )
    assert "(13,330 tokens, recomputed). Of these, the 4,850 tokens whose time is known took 20 %" in answers.repeated(
        partly
    )
    sentence = answers.ceiling(figures(judged_tokens=8, recomputed_tokens=9, fetched_ns=S, fetched_high_ns=S))
    assert sentence.startswith("**Fetching back the 8 tokens whose time is known would save")


@pytest.mark.parametrize(("unjudged", "said"), [(0, "12 %"), (1, "At least 11 %")])
def test_what_was_read_again_is_one_number_in_the_sentence_and_on_its_card(unjudged: int, said: str) -> None:
    known = figures(recomputed_tokens=118, prompt_tokens=1_000, unjudged_turns=unjudged)
    card = next(card for card in cards.reuse(known) if card.label == "Input read again")
    assert card.value == said
    assert answers.repeated(known).startswith(f"**{said} of the input was read again**")


def test_no_combination_of_what_is_known_reads_like_a_form() -> None:
    for turns, tokens, prompt, free, fetched, judged, unjudged in itertools.product(
        (0, 40), (None, 0, 9), (None, 100, 5_000), (None, 0, 20 * S), (None, 0, 10 * S), (0, 39), (0, 1)
    ):
        told = answers.repeated(
            figures(
                turns=turns,
                recomputed_tokens=tokens,
                prompt_tokens=prompt,
                free_ns=free,
                fetched_ns=fetched,
                judged_turns=judged,
                unjudged_turns=unjudged,
            )
        )
        assert not re.search(r"not measured|None|\b0 %|least under|least over", told), told
        assert told.endswith(".")


def test_what_reuse_gives_at_best_is_told_with_its_range_and_what_is_assumed() -> None:
    best = figures(fetched_ns=4 * S, fetched_low_ns=0, fetched_high_ns=6 * S, assumed=True)
    assert answers.ceiling(best) == (
        "**Fetching back all of that would save about 4 % of the agents' working time** (estimated: nine times in ten "
        "between nothing and 6 %): 4.0 s in all, or 2 % of all session time, partly assuming what a fetch takes."
    )
    assert answers.ceiling(figures()).startswith("**More reuse cannot make sessions shorter**")


def test_where_time_goes_that_no_reuse_shortens_is_said_with_a_no() -> None:
    assert answers.reuse_answer(figures()).why.endswith("goes into writing the answer, which no reuse shortens.")
    reading = figures(input_processing_ns=90 * S)
    assert "no reuse" not in answers.reuse_answer(reading).why


def test_what_is_measured_and_what_is_inferred_by_what_is_said_in_plain_words() -> None:
    assert answers.measured(figures()) is None
    told = figures(inferred_ns=50 * S, user_wait_ns=50 * S, user_wait_inferred_ns=50 * S)
    said, why = answers.measured(told) or ("", "")
    assert said.startswith("All of this time was clocked. For 25 % of it")
    assert "a person's message" in why
    assert "in one piece" not in why
    whole = answers.measured(figures(inferred_ns=10 * S, generation_inferred_ns=10 * S))
    assert whole is not None
    assert "answers that came in one piece" in whole[1]


def test_the_parts_of_a_bar_its_cards_and_its_sentence_are_the_same_and_sum_to_100() -> None:
    thirds = figures(wall_ns=3 * S, user_wait_ns=S, generation_ns=S, input_processing_ns=S)
    shown = [int(card.value.removesuffix(" %")) for card in cards.parts(thirds).values()]
    assert sorted(shown) == [33, 33, 34]
    assert shown == [int(said.removesuffix(" %")) for said in part_charts.parts_frame(thirds)["said"]]
    assert all(f"{share} % " in answers.time(thirds) for share in shown)


def test_what_did_not_change_is_neither_good_nor_bad() -> None:
    changes = {change.label: change.delta for change in cards.changes(figures(sessions=20), figures())}
    assert changes["Sessions"] == "+100 %"
    assert changes["Writing the answer"] == "+0 points"
