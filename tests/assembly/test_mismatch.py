"""What speaks for reused KV of other text, from where on, and how many tokens it concerns."""

from __future__ import annotations

from turnscope.assembly.mismatch import mismatch
from turnscope.assembly.state import Mismatch, Verdict
from turnscope.assembly.tokens import Split
from turnscope.marks import Shared

PARTS = Shared(300, 316)
"""The prompt differs from what was held somewhere from token 300 to 315."""


def fetched(prompt: int = 1250, local: int = 0, size: int = 1200) -> Split:
    return Split(prompt, local=local, fetched=size, external=0, computed=prompt - local - size)


def found(verdict: Verdict, split: Split | None = None, offered: int | None = None) -> Mismatch:
    wrong = mismatch(verdict, split if split is not None else fetched(), offered)
    assert wrong is not None
    return wrong


def test_a_prompt_as_long_as_what_was_held_is_no_sign_of_another_text_and_a_shorter_one_is() -> None:
    assert mismatch(Verdict(), fetched(1250), 1250) is None
    wrong = found(Verdict(), fetched(1250), 1251)
    assert (wrong.evidence, wrong.on_prefill, wrong.suspect) == ("lengths", Shared(0, None), 1200)


def test_what_the_digests_tell_outweighs_the_lengths() -> None:
    wrong = found(Verdict(continues=PARTS, of_hold=True), fetched(), 1599)
    assert (wrong.evidence, wrong.on_prefill, wrong.on_decode, wrong.suspect) == ("digests", PARTS, PARTS, 900)


def test_a_comparison_with_another_text_than_the_hold_s_says_nothing_of_what_was_fetched() -> None:
    assert mismatch(Verdict(continues=PARTS, of_hold=False), fetched(), 1200) is None


def test_a_hold_that_is_wrong_only_past_what_was_reused_did_no_harm() -> None:
    assert mismatch(Verdict(wrong_hold=Shared(1200, None)), fetched(), 1200) is None
    wrong = found(Verdict(wrong_hold=Shared(1199, None)), fetched(), 1200)
    assert (wrong.evidence, wrong.suspect) == ("inferred", 1)


def test_of_two_signs_the_earlier_place_counts_and_the_stronger_evidence_is_named() -> None:
    before, behind = Shared(100, 116), Shared(700, 716)
    for hold, first in ((before, before), (behind, PARTS)):
        wrong = found(Verdict(continues=PARTS, of_hold=True, wrong_hold=hold))
        assert (wrong.evidence, wrong.on_prefill, wrong.suspect) == ("digests", first, 1200 - first.low)


def test_of_a_local_hit_only_what_is_past_the_wrong_place_is_suspect() -> None:
    hit = Split(1250, local=512, fetched=0, external=0, computed=738)
    wrong = found(Verdict(wrong_hit=Shared(500, 512)), hit)
    assert (wrong.evidence, wrong.on_prefill, wrong.suspect) == ("inferred", Shared(500, 512), 12)


def test_what_p_had_itself_is_counted_beside_what_it_fetched_and_no_token_twice() -> None:
    verdict = Verdict(continues=PARTS, of_hold=True, wrong_hit=Shared(500, 512))
    wrong = found(verdict, fetched(local=512, size=688))
    assert (wrong.on_prefill, wrong.suspect) == (Shared(500, 512), 12 + 688)


def test_a_difference_within_the_local_hit_begins_with_the_first_fetched_token() -> None:
    for where in (PARTS, Shared(300, 700)):
        wrong = found(Verdict(continues=where, of_hold=True), fetched(local=512, size=688))
        assert wrong.on_prefill == Shared(512, max(513, where.high or 0))
        assert wrong.suspect == 688


def test_what_d_has_wrong_by_itself_is_no_matter_of_p_s_tokens() -> None:
    wrong = found(Verdict(wrong_decode=Shared(64, 80)), Split(1250, local=0, fetched=0, external=0, computed=1250))
    assert (wrong.evidence, wrong.on_prefill, wrong.on_decode, wrong.suspect) == ("inferred", None, Shared(64, 80), 0)
