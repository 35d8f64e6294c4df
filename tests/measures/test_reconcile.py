"""Reconciliation with the engines' own counters: reading both pages, comparing, printing."""

from __future__ import annotations

from turnscope.measures import reconcile

ENGINE_PAGE = """\
# TYPE vllm:prompt_tokens_by_source_total counter
vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_compute"} 1200.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_cache_hit"} 0.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="external_kv_transfer"} 2999.0
# TYPE vllm:nixl_bytes_transferred histogram
vllm:nixl_bytes_transferred_bucket{engine="0",le="+Inf",model_name="tiny"} 3.0
vllm:nixl_bytes_transferred_count{engine="0",model_name="tiny"} 3.0
vllm:nixl_bytes_transferred_sum{engine="0",model_name="tiny"} 3.407872e+06
# TYPE vllm:nixl_num_kv_expired_reqs_total counter
vllm:nixl_num_kv_expired_reqs_total{engine="0",model_name="tiny"} 2.0
"""
OUR_PAGE = """\
# TYPE turnscope_request_prompt_tokens_total counter
turnscope_request_prompt_tokens_total{engine="prefill-0",source="local_compute"} 1200.0
turnscope_request_prompt_tokens_total{engine="prefill-0",source="local_cache_hit"} 0.0
turnscope_request_prompt_tokens_total{engine="prefill-0",source="external_kv_transfer"} 2999.0
# TYPE turnscope_transfer_reads_total counter
turnscope_transfer_reads_total{direction="reverse_fetch",engine="prefill-0",state="done"} 2.0
turnscope_transfer_reads_total{direction="unknown",engine="prefill-0",state="done"} 1.0
turnscope_transfer_reads_total{direction="reverse_fetch",engine="prefill-0",state="declined"} 1.0
turnscope_transfer_reads_total{direction="reverse_fetch",engine="prefill-0",state="notice_only"} 5.0
turnscope_transfer_reads_total{direction="reverse_fetch",engine="prefill-0",state="failed"} 0.0
# TYPE turnscope_transfer_bytes_total counter
turnscope_transfer_bytes_total{direction="reverse_fetch",engine="prefill-0"} 3.407872e+06
# TYPE turnscope_kv_expired_total counter
turnscope_kv_expired_total{engine="prefill-0",what="declined"} 1.0
turnscope_kv_expired_total{engine="prefill-0",what="lease"} 1.0
"""


def rows_of(our_page: str = OUR_PAGE, engine_page: str = ENGINE_PAGE) -> list[reconcile.Row]:
    return reconcile.compare(reconcile.ours(our_page), {"prefill-0": reconcile.theirs(engine_page)})


def test_equal_pages_have_no_differences() -> None:
    rows = rows_of()
    compared = {row.quantity: row.theirs for row in rows if row.difference == 0}
    assert compared["prompt tokens, external_kv_transfer"] == 2999
    assert compared["transfers"] == 3
    assert compared["transfer bytes"] == 3_407_872
    assert compared["expiries"] == 2


def test_a_quantity_that_only_we_count_is_no_equality_even_at_0() -> None:
    (row,) = reconcile.differences(rows_of())
    assert (row.quantity, row.ours, row.theirs, row.difference) == ("failed transfers", 0, None, None)


def test_each_side_is_added_up_over_its_label_sets() -> None:
    page = ENGINE_PAGE + 'vllm:nixl_num_kv_expired_reqs_total{engine="1",model_name="tiny"} 40.0\n'
    assert reconcile.theirs(page)["expiries"] == 42
    assert reconcile.ours(OUR_PAGE)["prefill-0"]["expiries"] == 2


def test_a_difference_is_signed_marked_and_counted() -> None:
    rows = rows_of(OUR_PAGE.replace("2999.0", "2283.0"))
    shown = reconcile.table(rows)
    (line,) = [line for line in shown.splitlines() if "external_kv_transfer" in line]
    assert line.split()[-4:] == ["2,283", "2,999", "-716", "<--"]
    assert shown.splitlines()[-1] == "7 quantities of 1 engines, 2 differences"


def test_an_engine_that_one_side_does_not_know_is_different_in_everything() -> None:
    rows = reconcile.compare({}, {"prefill-0": reconcile.theirs(ENGINE_PAGE)})
    assert len(reconcile.differences(rows)) == len(rows) == 6
    assert all(row.difference is None for row in rows)
