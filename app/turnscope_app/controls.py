"""What every page has: its heading with a link to copy, downloads of its tables, and notes on what is shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import streamlit as st

from turnscope.shipped import DEMO_VARIABLE
from turnscope_app import advice, data, exports, periods, text, words

"""Set by ``turnscope demo``: what its data are, in a sentence."""
SPANS: Final = """\
export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318
export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
export OTEL_TRACES_EXPORTER=otlp
export OTEL_SERVICE_NAME=my-agent"""
"""What makes an instrumented agent send its spans to a sidecar on the same machine."""
_HERE: Final = Path(__file__).parent
_BUTTON: Final = '<button type="button" title="{title}">Copy link to this view</button><span role="status"></span>'
_STYLE: Final = """
button {font: inherit; font-size: 0.875rem; color: var(--st-text-color); background: transparent; cursor: pointer;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius); padding: 0.25rem 0.75rem}
button:hover, button:focus-visible {color: var(--st-link-color); border-color: currentColor}
span {font-size: 0.875rem; color: var(--st-text-color); margin-left: 0.5rem}
"""


def head(title: str, *, page: str) -> None:
    """The page's heading, and beside it a button that copies a link to this view."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.title(title, anchor=False, width="content")
        copy_link(page=page)


def copy_link(*, page: str) -> None:
    """A button that copies the address of this view, with its filters."""
    made = st.components.v2.component(
        "turnscope_copy_link",
        html=_BUTTON.format(title="The address of this page as it is now: it reopens the same view"),
        css=_STYLE,
        js=(_HERE / "copy.js").read_text(),
    )
    made(data={"copied": "Copied"}, key=f"{page}_link", width="content")


def download(table: pa.Table, name: str, *, page: str) -> None:
    """CSV and Parquet of a table as it was asked for, of at most as many rows as are shown; ``name``: of the file.

    The files are made when somebody asks for them.
    """
    with st.container(horizontal=True, key=f"{page}_{name}_downloads"):
        for ending, mime, made in (
            ("csv", "text/csv", exports.to_csv),
            ("parquet", "application/vnd.apache.parquet", exports.to_parquet),
        ):
            st.download_button(
                {"csv": "CSV", "parquet": "Parquet"}[ending],
                data=partial(made, table),
                file_name=f"turnscope-{name}.{ending}",
                mime=mime,
                key=f"{page}_{name}_{ending}",
                on_click="ignore",
                type="tertiary",
                icon=":material/download:",
                help=f"These {table.num_rows:,} rows with every column: times in nanoseconds, sizes in bytes.",
            )


def owned(action: advice.Action) -> str:
    """What to do and who can, as Markdown."""
    owner, colour = advice.OWNERS[action.owner]
    return f":{colour}-badge[{owner}] {action.said}"


def choice(
    label: str,
    options: Sequence[str],
    *,
    key: str,
    shown: Callable[[str], str] = str,
    nothing: str = "any",
    more: str | None = None,
    width: int | Literal["stretch"] = "stretch",
) -> str | None:
    """A filter of the page: one of ``options``, or None, which stands as ``nothing``. Kept in the link.

    ``shown``: an option on the screen; ``more``: what the filter means, on hover.
    """
    return st.selectbox(
        label,
        options,
        index=None,
        format_func=shown,
        placeholder=nothing,
        key=key,
        bind="query-params",
        help=more,
        width=width,
    )


def period_asked(page: str) -> None:
    """Before the choice of a period: say so where the address asks for one that there is not, also under the
    name that a person would write by hand."""
    not_there("period", st.query_params.get(f"{page}_period", st.query_params.get("period")), periods.NAMES)


def demo_notice() -> None:
    """That these data are a demonstration's, where they are."""
    said = os.environ.get(DEMO_VARIABLE)
    if said:
        st.info(f"**Demo data.** {said}", icon=":material/science:")


def not_there(noun: str, asked: str | None, known: Iterable[str]) -> None:
    """Say so where the address asks for something that there is not: the page then shows what it shows without."""
    if asked is not None and asked not in known:
        st.warning(
            f"There is no {noun} {text.escaped(text.harmless(asked))}: this address asks for it.",
            icon=":material/link_off:",
        )


def not_this() -> None:
    """What none of these pages is about."""
    st.caption(words.NOT_THIS)


def nothing_yet() -> None:
    """End a page of a store without turns with what to do, and draw it anew as soon as there is one."""
    st.info(
        "The store is there, and it has no turns yet. Send a request through your proxy: a turn appears here about a "
        "minute after it ended. If none comes, `turnscope doctor` says what is missing.",
        icon=":material/hourglass_empty:",
    )

    @st.fragment(run_every=data.FRESH_SECONDS)
    def wait() -> None:
        if data.totals(data.store()).turns:
            st.rerun()

    wait()
    st.stop()


def nothing_here() -> None:
    """End a page whose filters leave nothing."""
    st.info("No turn meets all of these filters. Clear one of them to see more.", icon=":material/filter_alt_off:")
    st.stop()
