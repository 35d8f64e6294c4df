"""docs/alerts.md."""

from __future__ import annotations

from alerts import build
from docs.pages.markdown import HEAD, table
from turnscope import shipped


def page() -> str:
    """Every alert with its runbook, and every recording rule."""
    out = [
        f"{HEAD}# Alerts\n\n"
        "`alerts/rules.yml` is made from `alerts/*.py`. Only possibly wrong answers and stuck turns wake somebody "
        "(severity `page`); all else is a `ticket`. Labels that your targets have (`job`, `instance` and others) stay "
        "on every alert; rules expect the job name `turnscope`.\n\n"
        "```yaml\n"
        "rule_files: [alerts/rules.yml]\n"
        "```\n\n"
        f"A runbook's address is `{shipped.RUNBOOKS}`, the alert's name and `.md`: the explorer has all runbooks with "
        "it, so `turnscope explore` on the machine where you read the alert is enough, without a network. Where others "
        "can reach the explorer, write them out with `turnscope assets DIR --explorer URL`: then rules, dashboards and "
        "the filtered links in runbooks lead there. Where you serve `alerts/runbooks/` yourself, say so with "
        "`--runbooks URL`: the address up to the file's name, such as `https://wiki.example/runbooks/`.\n\n"
        "`deploy/alertmanager.yml` has the routes, and says what is silent while its cause is told.\n\n"
        "`make live` does on a real pair what runbooks say, and sees the alert fire before and be quiet afterwards:\n\n"
        "- a proxy that keeps no handles, and prefix caches emptied (TurnscopeKvMismatch, TurnscopeReadAfterRelease, "
        "TurnscopeHandleReused, TurnscopeReadsDeclined, TurnscopeTurnsStuck);\n"
        "- a proxy that forgets handles early (TurnscopeReadsDeclined, TurnscopeReadAfterRelease).\n\n"
        "`python -m live --configurations switched,routed`, which starts engines again and again and takes a third "
        "one, does so with:\n\n"
        "- P, and then D, started again with `bidirectional_kv_xfer` on, and P with a lower `kv_recompute_threshold` "
        "(TurnscopeNothingReused with the causes `feature_off` and `below_threshold`);\n"
        "- a proxy that gives a prefill up and asks once more without the handle (TurnscopeTurnsStuck): its client is "
        "answered, and the request that hung is an attempt of that turn;\n"
        "- the file that `TURNSCOPE_OFF_FILE` names, put there and taken away (TurnscopeHookMissing): meanwhile "
        "engines serve as before, what hung hangs all the same, and nothing of it is told;\n"
        "- a second D that cannot shake hands with P, taken out of the proxy's list (TurnscopeHandshakesFail).\n"
    ]
    for group in build.GROUPS:
        out.append(f"\n## {group.title}\n\n")
        ratios = [(f"`{rule.record}`", rule.says) for rule in group.rules if isinstance(rule, build.Recording)]
        if ratios:
            out.append(table(("recorded as", "what"), ratios))
        rows = []
        for rule in group.rules:
            if isinstance(rule, build.Alert):
                cause = "".join(f" `{name}={value}`" for name, value in rule.labels.items())
                link = f"[{rule.name}](../alerts/runbooks/{rule.name}.md){cause}"
                wait = f"{'at once' if rule.wait == '0s' else rule.wait}. {rule.wait_reason}"
                rows.append((link, rule.severity, f"`{rule.expr}`", wait))
        if rows:
            out.append(table(("alert", "severity", "while", "after"), rows))
    return "".join(out)
