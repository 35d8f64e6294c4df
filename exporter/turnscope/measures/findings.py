"""What is wrong, or odd, in a system that turnscope watches: from its status to findings with their fixes.

Each check is a function from the status to its findings. Adding one costs a function here or in
a sibling, its entry in ``CHECKS`` and a test that it fires and nearly fires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from turnscope.measures import (
    checks_clocks,
    checks_continuity,
    checks_fabric,
    checks_flow,
    checks_holds,
    checks_hooks,
    checks_settings,
    checks_sidecar,
    checks_turns,
)
from turnscope.measures.finding import Finding, Severity
from turnscope.model import SystemStatus

CHECKS: Final[tuple[Callable[[SystemStatus], Iterable[Finding]], ...]] = (
    checks_hooks.no_engine,
    checks_hooks.no_proxy,
    checks_hooks.one_side_missing,
    checks_hooks.switched_off,
    checks_hooks.silent,
    checks_hooks.lost_events,
    checks_hooks.hook_errors,
    checks_hooks.versions_differ,
    checks_hooks.clock_off,
    checks_hooks.replayed,
    checks_clocks.clocks_apart,
    checks_clocks.clock_stepped,
    checks_settings.no_connector,
    checks_settings.bidirectional_off,
    checks_settings.names_shared,
    checks_settings.block_sizes_differ,
    checks_settings.vllm_versions_differ,
    checks_settings.threshold_odd,
    checks_settings.prefix_caching_off,
    checks_settings.hold_shorter_than_margin,
    checks_settings.proxy_keeps_too_long,
    checks_flow.streamed_without_handle,
    checks_flow.handles_never_given,
    checks_flow.expiry_dropped,
    checks_flow.given_too_late,
    checks_flow.no_session_ids,
    checks_flow.spans_without_session,
    checks_flow.direct_requests,
    checks_flow.rejected_by_frontend,
    checks_flow.stuck,
    checks_flow.suspicious,
    checks_holds.read_after_release,
    checks_holds.retention_pressure,
    checks_continuity.prefix_cache_spoiled,
    checks_continuity.digests_unlike,
    checks_continuity.digest_keys_differ,
    checks_fabric.fell_back_to_tcp,
    checks_fabric.same_host_slow_read_path,
    checks_fabric.cards_not_looked_at,
    checks_fabric.no_handoffs,
    checks_fabric.child_not_measured,
    checks_turns.pair_fails,
    checks_turns.unexplained,
    checks_sidecar.journal_fails,
    checks_sidecar.journal_damaged,
    checks_sidecar.store_fails,
    checks_sidecar.traces_fail,
    checks_sidecar.records_rejected,
    checks_sidecar.spans_rejected,
    checks_sidecar.requests_too_large,
    checks_sidecar.misdirected,
    checks_sidecar.spans_not_passed_on,
    checks_sidecar.not_scraped,
    checks_sidecar.replaying,
)


def findings(status: SystemStatus) -> list[Finding]:
    """All findings, the most severe first, in the order of ``CHECKS`` within a severity."""
    found = [finding for check in CHECKS for finding in check(status)]
    return sorted(found, key=lambda f: list(Severity).index(f.severity))
