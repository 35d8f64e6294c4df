"""The reader: opens what the manifests list, and answers questions with an embedded DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from threading import Lock
from typing import Any, Final, TypeVar

import duckdb
import msgspec
import pyarrow as pa

from turnscope.model import AgentSpan, Figures, Period, SessionSummary, Turn
from turnscope.store import followed, manifest, overview, queries, session_queries, sql, totals
from turnscope.store.errors import StoreBroken, StoreMissing
from turnscope.store.files import open_files
from turnscope.store.followed import FOLLOWED
from turnscope.store.manifest import File
from turnscope.store.queries import Files, Params, Sources
from turnscope.store.schema import HOLDS, SESSIONS, SPANS, TABLES, TURNS, Table, to_arrow
from turnscope.store.scope import Scope
from turnscope.store.session_queries import Latency, Size, SummaryFilter, SummarySort
from turnscope.store.shapes import Shapes
from turnscope.store.sql import Stored
from turnscope.store.structs import AT_ONCE, Revised, newest, struct
from turnscope.store.totals import Counts, Totals

MEMORY: Final = "2GB"
_TRIES: Final = 3
_Answer = TypeVar("_Answer")
Fresh = Sequence[SessionSummary]
"""Summaries that are newer than the store's."""
Query = Callable[[Sources], tuple[str, Params]]


class Page(msgspec.Struct, frozen=True):
    """Some rows, and how many there are in all."""

    table: pa.Table
    total: int


class StoreReader:
    """Reads the store at ``url`` (a local folder or ``s3://bucket/folder``), also while writers work on it.

    Every question sees the store as it is at that moment. All times are Unix nanoseconds; None is "not measured".
    Raises StoreMissing when there is no store, StoreBroken when a part of it cannot be read, StoreTransientError
    when it cannot be reached. May be used from several threads. ``threads``: of DuckDB, for one question; each has
    memory of its own.
    """

    def __init__(self, url: str, *, threads: int = 2) -> None:
        self.url = url
        self._files = open_files(url)
        self._connection = sql.connect(memory=MEMORY, threads=threads)
        self._shapes = Shapes()
        self._again: dict[str, tuple[Stored, pa.Table]] = {}
        """By table: its files, and the keys that they have several rows of. Files never change."""
        self._followed: tuple[tuple[Stored, Stored], pa.Table] | None = None
        """The relation ``FOLLOWED``, and the files of turns and holds that it is made of."""
        self._following = Lock()
        try:
            self._files.register(self._connection)
            for table in TABLES.values():
                sql.create_empty(self._connection, table)
            self._listed()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()
        self._files.close()

    def version(self) -> str:
        """Another text whenever other files are listed: what was answered before may then have changed."""
        return sha256("\n".join(file.path for file in self._listed()).encode()).hexdigest()

    def ask(self, query: Query, fresh: Fresh = ()) -> pa.Table:
        """The answer to a question of one of the query modules beside this one."""
        return self._ask(query, None, _newer(fresh))

    def page(self, query: Query, *, limit: int, offset: int = 0, fresh: Fresh = ()) -> Page:
        """A part of it, of a question that takes ``$limit`` and ``$offset`` and has ``total``."""
        return self._page(query, limit, offset, _newer(fresh))

    def unattributed(self) -> pa.Table:
        """The turns without a session id as ``session`` sums one up; no row if there are none."""
        return self._ask(lambda s: queries.session(s, None))

    def session(self, session_id: str | None) -> dict[str, Any] | None:
        """One session's turns summed (None: those of the turns without an id), or None if it has no turns."""
        found = self._ask(lambda s: queries.session(s, session_id)).to_pylist()
        return found[0] if found else None

    def turns(self, session_id: str | None, *, limit: int = 1000, offset: int = 0) -> Page:
        """One session's turns, oldest first: the fields of ``Turn``, and ``hold_*`` of the hold each one left."""
        return self._page(lambda s: queries.turns(s, session_id), limit, offset)

    def recent_turns(self, *, limit: int = 100, offset: int = 0) -> Page:
        """The newest turns of all sessions, newest first, with the columns of ``turns``."""
        return self._page(queries.recent_turns, limit, offset)

    def holds(self, hold_ids: list[str]) -> pa.Table:
        """Some holds: the fields of ``HoldRecord``, oldest first. One of which nothing is known is missing."""
        return self._ask(lambda s: queries.holds(s, hold_ids))

    def spans(self, session_id: str, *, limit: int = 1000, offset: int = 0) -> Page:
        """The spans of one session's agents: the fields of ``AgentSpan``, oldest first."""
        return self._page(lambda s: queries.spans(s, session_id), limit, offset)

    def summaries(
        self,
        where: SummaryFilter = SummaryFilter(),  # noqa: B008 - frozen
        *,
        sort: SummarySort = SummarySort.LAST,
        descending: bool = True,
        limit: int = 100,
        offset: int = 0,
        fresh: Fresh = (),
    ) -> tuple[list[SessionSummary], int]:
        """Sessions as they were summed up last, those of spans alone included, and how many there are in all.
        ``fresh``: summaries that are newer than the store's."""
        page = self._page(
            lambda s: session_queries.summaries(s, where, sort, descending=descending), limit, offset, _newer(fresh)
        )
        return [struct(row, SessionSummary) for row in page.table.to_pylist()], page.total

    def listed(
        self,
        where: SummaryFilter = SummaryFilter(),  # noqa: B008 - frozen
        *,
        sort: SummarySort = SummarySort.LAST,
        descending: bool = True,
        limit: int = 100,
        offset: int = 0,
        fresh: Fresh = (),
    ) -> Page:
        """The same as a table of what a list shows: ``session_queries.LISTED`` and ``spared_ns``."""
        return self._page(
            lambda s: session_queries.listed(s, where, sort, descending=descending), limit, offset, _newer(fresh)
        )

    def summed(
        self,
        where: SummaryFilter = SummaryFilter(),  # noqa: B008 - frozen
        fresh: Fresh = (),
    ) -> Figures:
        """The sums over all sessions that meet ``where``."""
        return self._figures(lambda s: session_queries.summed(s, where), fresh)[0]

    def latencies(
        self,
        where: SummaryFilter = SummaryFilter(),  # noqa: B008 - frozen
        fresh: Fresh = (),
    ) -> list[Latency]:
        """Time to first token beside completed tasks, over the sessions that meet ``where``: first per turn index, then
        per length of the context."""
        rows = self._ask(lambda s: session_queries.latencies(s, where), None, _newer(fresh)).to_pylist()
        return [struct(row, Latency) for row in rows]

    def figures(self, period: Period, fresh: Fresh = ()) -> Figures:
        """The sums over the sessions of ``period``."""
        return self._figures(lambda s: overview.figures(s, period), fresh)[0]

    def course(self, period: Period, fresh: Fresh = ()) -> list[Figures]:
        """The same for each of ``overview.STEPS`` equal parts of it that has a session, in order."""
        return self._figures(lambda s: overview.course(s, period), fresh)

    def by_application(self, period: Period, fresh: Fresh = ()) -> list[Figures]:
        """The same for each application that spans name, those with most sessions first."""
        return self._figures(lambda s: overview.by_application(s, period), fresh)

    def telling(self, period: Period, fresh: Fresh = ()) -> dict[str, SessionSummary]:
        """Sessions worth opening: the ``typical``, the ``slow`` and the ``worst`` one, as far as there are such."""
        rows = self._ask(lambda s: overview.telling(s, period), None, _newer(fresh)).to_pylist()
        return {row.pop("what"): struct(row, SessionSummary) for row in rows}

    def bounds(self, fresh: Fresh = ()) -> tuple[int, int, int]:
        """How many sessions there are, and when the first and the last of them ended (Unix ns); 0 where none is."""
        (row,) = self._ask(overview.bounds, None, _newer(fresh)).to_pylist()
        return row["sessions"], row["first_ns"] or 0, row["last_ns"] or 0

    def names(self, fresh: Fresh = ()) -> dict[str, list[str]]:
        """Every application, agent, model, deployment and engine of a session, the frequent first."""
        found: dict[str, list[str]] = {}
        for row in self._ask(overview.names, None, _newer(fresh)).to_pylist():
            found.setdefault(row["kind"], []).append(row["value"])
        return found

    def known(self, session_ids: list[str]) -> dict[str, tuple[list[Turn], list[AgentSpan]]]:
        """All turns and spans of some sessions, in no order, by session. One of which nothing is known is missing."""
        found: dict[str, tuple[list[Turn], list[AgentSpan]]] = {}
        if not session_ids:
            return found
        wanted = set(session_ids)
        for turn in self._newest(lambda s: session_queries.turns_of(s, session_ids), TURNS, Turn):
            if turn.session_id in wanted and not turn.withdrawn:
                found.setdefault(turn.session_id, ([], []))[0].append(turn)
        for span in self._newest(lambda s: session_queries.spans_of(s, session_ids), SPANS, AgentSpan):
            if span.session_id in wanted:
                found.setdefault(span.session_id, ([], []))[1].append(span)
        return found

    def sizes(self, session_ids: list[str]) -> list[Size]:
        """How much is known of some sessions. One of which nothing is known is missing."""
        if not session_ids:
            return []
        rows = self._ask(lambda s: session_queries.sizes(s, session_ids)).to_pylist()
        return [struct(row, Size) for row in rows]

    def left_by(self, turn_ids: list[str], span_keys: list[str]) -> list[str]:
        """Sessions that any revision of these turns and spans was of."""
        table = self._ask(lambda s: session_queries.left_by(s, turn_ids, span_keys))
        return [str(name) for name in table["session_id"].to_pylist()]

    def outdated(self) -> list[str]:
        """Sessions whose summary is missing, or was made of another number of turns or spans; the newest first."""
        return [str(name) for name in self._ask(session_queries.outdated)["session_id"].to_pylist()]

    def counted_until(self, session_ids: list[str]) -> dict[str, int]:
        """Up to when the metrics have some sessions (``SessionSummary.counted_until_ns``), where that is known."""
        rows = self._ask(lambda s: session_queries.counted_until(s, session_ids)).to_pylist()
        return {row["session_id"]: row["counted_until_ns"] for row in rows}

    def uncounted(self) -> list[str]:
        """Sessions that the metrics are to have more of."""
        return [str(name) for name in self._ask(session_queries.uncounted)["session_id"].to_pylist()]

    def run_turns(self, run: str) -> pa.Table:
        """Of each turn of an imported run: prompt_tokens, ttft_ns, prefill_ns, fetch_ns, fetch_reads."""
        return self._ask(lambda s: queries.run_turns(s, run))

    def runs(self) -> list[str]:
        """The names of the imported runs."""
        return [row["run"] for row in self._ask(queries.runs).to_pylist()]

    def totals(self, scope: Scope = Scope(), fresh: Fresh = ()) -> Totals:  # noqa: B008 - frozen
        """What the store covers of ``scope``, without one as a whole."""
        return Totals(**self.ask(lambda s: totals.sums(s, scope), fresh).to_pylist()[0])

    def counts(self, scope: Scope = Scope(), fresh: Fresh = (), *, fates: bool = True) -> Counts:  # noqa: B008 - frozen
        """How many turns and holds of ``scope`` have each path, reason, suspicion and fate; without ``fates``, which
        take longest to find, those of turns alone."""
        turns = self.ask(lambda s: totals.counts(s, scope), fresh).to_pylist()
        held = self.ask(lambda s: totals.hold_counts(s, scope), fresh).to_pylist() if fates else []
        return totals.build(turns, held)

    # --- inside -------------------------------------------------------------------------------------
    def _figures(self, query: Query, fresh: Fresh) -> list[Figures]:
        return [struct(row, Figures) for row in self._ask(query, None, _newer(fresh)).to_pylist()]

    def _page(self, query: Query, limit: int, offset: int, fresh: pa.Table | None = None) -> Page:
        table = self._ask(query, {"limit": limit, "offset": offset}, fresh)
        total = int(table["total"][0].as_py()) if table.num_rows else 0
        return Page(table.drop_columns(["total"]), total)

    def _ask(self, query: Query, extra: Params | None = None, fresh: pa.Table | None = None) -> pa.Table:
        return self._read(query, _table, extra, fresh)

    def _newest(self, query: Query, table: Table, type_: type[Revised]) -> list[Revised]:
        return self._read(query, lambda found: newest(found.to_arrow_reader(AT_ONCE), table, type_))

    def _read(
        self,
        query: Query,
        take: Callable[[Any], _Answer],
        extra: Params | None = None,
        fresh: pa.Table | None = None,
    ) -> _Answer:
        """Answer from the files listed now; if one has gone meanwhile, from those listed then. ``take`` makes the
        answer of DuckDB's relation."""
        listed = self._listed()
        for attempt in range(_TRIES):
            try:
                files = self._stored(listed)
                text, params = query(queries.sources(files, fresh=fresh is not None))
                return self._answer(text, {**params, **(extra or {})}, files, fresh, take)
            except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException):
                raise  # a mistake in the query, not in the store
            except (duckdb.Error, OSError) as error:
                again = self._listed()
                if again == listed or attempt == _TRIES - 1:
                    raise StoreBroken(
                        f"a file of the store {self.url} cannot be read ({_first_line(error)}): restore the store from "
                        "a backup, or remove it and let turnscope serve start a new one"
                    ) from error
                listed = again
        raise AssertionError("unreachable")

    def _answer(
        self,
        text: str,
        params: Params,
        files: Files,
        fresh: pa.Table | None,
        take: Callable[[Any], _Answer],
        given: dict[str, pa.Table] | None = None,
    ) -> _Answer:
        """Answer from these files, with the relations that the text names and those ``given``."""
        every = {key: some for name, stored in files.items() for key, some in stored.params(name).items()}
        named = {key: some for key, some in every.items() if f"${key}" in text}
        cursor = self._connection.cursor()
        try:
            for name, relation in (given or {}).items():
                cursor.register(name, relation)
            if fresh is not None:
                cursor.register(queries.FRESH, fresh)
            for table in TABLES.values():
                if f"again_{table.name}" in text:
                    cursor.register(f"again_{table.name}", self._repeated(cursor, table, files[table.name], fresh))
            if FOLLOWED in text:
                cursor.register(FOLLOWED, self._followed_turns(files))
            return take(cursor.sql(text, params={**params, **named}))
        finally:
            cursor.close()

    def _stored(self, listed: list[File]) -> Files:
        """What is listed, by table."""
        addresses = {name: [self._files.address(f.path) for f in listed if f.table == name] for name in TABLES}
        self._shapes.forget(address for some in addresses.values() for address in some)
        cursor = self._connection.cursor()
        try:
            return {name: self._shapes.stored(cursor, some) for name, some in addresses.items()}
        finally:
            cursor.close()

    def _followed_turns(self, files: Files) -> pa.Table:
        """The relation ``FOLLOWED``: about 85 bytes of memory a turn, for as long as there is nothing new. Who asks
        while it is being worked out waits for it: twice at once would take twice the time and memory."""
        of = files[TURNS.name], files[HOLDS.name]

        def ask(text: str, params: Params, given: dict[str, pa.Table]) -> pa.Table:
            return self._answer(text, params, files, None, _table, given)

        with self._following:
            if self._followed is None or self._followed[0] != of:
                self._followed = None
                self._followed = of, followed.work_out(queries.sources(files), ask)
            return self._followed[1]

    def _repeated(self, cursor: Any, table: Table, files: Stored, fresh: pa.Table | None) -> pa.Table:
        """What ``sql.newest`` wants to be told of ``table``."""
        known = self._again.get(table.name)
        if known is None or known[0] != files:
            text = sql.again(table, sql.rows(table, table.name, files))
            known = files, cursor.sql(text, params=files.params(table.name)).to_arrow_table()
            self._again[table.name] = known
        if fresh is None or table is not SESSIONS:
            return known[1]
        newer = cursor.sql(f"SELECT hash({table.key}) AS h FROM {queries.FRESH}").to_arrow_table()
        return pa.concat_tables([known[1], newer])

    def _listed(self) -> list[File]:
        """Every file that a manifest lists, in a fixed order."""
        listed: list[File] = []
        seen = False
        for path in self._files.names(manifest.FOLDER):
            if not path.endswith(".json"):
                continue
            try:
                data, _ = self._files.read(path)
            except FileNotFoundError:
                continue
            seen = True
            listed.extend(manifest.decode(data, self._files.address(path)).files)
        if not seen:
            raise StoreMissing(
                f"there is no turnscope store at {self.url}: check the address, or let `turnscope serve --store "
                f"{self.url}` or `turnscope import` make one"
            )
        return sorted(listed, key=lambda f: f.path)


def _newer(fresh: Fresh) -> pa.Table | None:
    return to_arrow(SESSIONS, fresh)[0] if fresh else None


def _table(found: Any) -> pa.Table:
    table: pa.Table = found.to_arrow_table()
    return table


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
