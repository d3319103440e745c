"""The page as HTML: one file, no script, nothing fetched; light or dark as the browser is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape

from ticdc_codec.tso import time_text
from ticdc_lakehouse.counted import counted, duration
from ticdc_lakehouse.ops.status import Check, FeedStatus, Health
from ticdc_lakehouse.schema.names import by_text, texts_of
from ticdc_local.report import plots
from ticdc_local.report.facts import FeedFacts, TableFacts
from ticdc_local.report.plots import SECONDS, Line, bars, lines, stacks

STYLE = """
:root { color-scheme: light dark; --ink: #1b2733; --soft: #5b6b7b; --line: #d9e0e7; --paper: #fff; --card: #f5f7fa;
  --good: #1a7f4b; --warn: #b26a00; --bad: #c0282d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa8b5; --line: #2f3b47; --paper: #0f151b;
  --card: #18212a; --good: #4cc38a; --warn: #e0a33e; --bad: #ff6b6b; } }
body { margin: 0 auto; max-width: 1120px; padding: 24px; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 36px 0 8px; } h3.broken { margin-top: 16px; }
h3 { font-size: 14px; margin: 0 0 8px; } .card h3 { color: var(--soft); font-weight: 600; }
p { margin: 0 0 12px; } .soft { color: var(--soft); } code { font-size: 13px; overflow-wrap: anywhere; }
.cards, .plots { display: grid; gap: 12px; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); }
.plots { grid-template-columns: repeat(auto-fill, minmax(460px, 1fr)); margin: 12px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; }
.card b { display: block; font-size: 16px; } .card p { margin: 0; overflow: hidden; display: -webkit-box;
  -webkit-box-orient: vertical; -webkit-line-clamp: 5; overflow-wrap: anywhere; }
.fine { color: var(--good); } .attention { color: var(--warn); }
.broken { color: var(--bad); } a { color: inherit; }
table { border-collapse: collapse; width: 100%; font-size: 13px; } th { text-align: left; color: var(--soft); }
th, td { border-bottom: 1px solid var(--line); padding: 4px 10px 4px 0; vertical-align: top; }
details { border-top: 1px solid var(--line); padding: 8px 0; } summary { cursor: pointer; }
"""


def page(lake: str, made_at: datetime, feeds: Sequence[FeedFacts], check: Check) -> str:
    """Returns the whole page."""
    cards = "".join(_card(each.status.feed, *check(each.status)) for each in feeds)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Lake {escape(lake)}</title><style>{STYLE}{plots.STYLE}</style></head><body>"
        f"<h1>Lake {escape(lake)}</h1>"
        f'<p class="soft">{counted(len(feeds), "feed")}, as of {made_at:%Y-%m-%d %H:%M:%S} UTC</p>'
        f'<div class="cards">{cards}</div>{"".join(map(_feed, feeds))}</body></html>\n'
    )


def _card(feed: str, health: Health, text: str) -> str:
    word, _, why = text.partition(": ")
    return (
        f'<div class="card"><b><a href="#{escape(feed)}">{escape(feed)}</a></b><p title="{escape(why)}">'
        f'<span class="{health.name.lower()}">{_MARKS[health]} {word}</span>: {escape(why)}</p></div>'
    )


_MARKS = {Health.FINE: "●", Health.ATTENTION: "▲", Health.BROKEN: "■"}


def _feed(facts: FeedFacts) -> str:
    status = facts.status
    sections = "".join(
        f'<div class="card"><h3>{title}</h3>{content}</div>' for title, content in _plots(facts) if content
    )
    return (
        f'<h2 id="{escape(status.feed)}">{escape(status.feed)}</h2>{_figures(status)}{_blocked(status)}'
        f'<div class="plots">{sections}</div>{_ddls(facts)}{_catalogue(facts)}'
    )


def _figures(status: FeedStatus) -> str:
    figures = {
        "watermark": f"{time_text(status.tso)}<br>TSO {status.tso}" if status.tso else "none published yet",
        "unapplied": _duration(status.unapplied_seconds),
        "age of data": _duration(status.age_seconds),
        "messages": ", ".join(
            f"{getattr(status, fate):,}&nbsp;{fate}"
            for fate in ("landed", "decoded", "waiting", "quarantined", "dismissed")
        ),
    }
    cards = "".join(f'<div class="card"><h3>{name}</h3>{value}</div>' for name, value in figures.items())
    return f'<div class="cards">{cards}</div>'


def _duration(seconds: float | None) -> str:
    return "unknown" if seconds is None else duration(seconds)


def _plots(facts: FeedFacts) -> Iterable[tuple[str, str]]:
    windows = facts.windows
    age = Line(
        "age of the newest data when it was published", [(each.published_at, each.age_seconds) for each in windows]
    )
    yield "Age when published", lines([age], SECONDS)
    layers = [
        Line("silver: landed to decoded", _points(facts, "silver_seconds")),
        Line("gold: decoded to published", _points(facts, "gold_seconds")),
    ]
    yield "Durations by layer", lines([line for line in layers if line.points], SECONDS)
    tables = by_text(sorted({name for _, name in facts.rows}))
    columns = [f"window {each.number}" for each in windows]
    parts = {text: [facts.rows.get((each.number, name), 0) for each in windows] for text, name in tables.items()}
    yield "Row changes by table and window", stacks(columns, parts, "row changes") if parts else ""
    none = '<span class="fine">none</span>' if windows else ""
    yield "Open messages in quarantine by reason", bars(facts.status.reasons, "message") or none


def _points(facts: FeedFacts, name: str) -> list[tuple[datetime, float]]:
    points = ((each.published_at, getattr(each, name)) for each in facts.windows)
    return [(at, seconds) for at, seconds in points if seconds is not None]


def _blocked(status: FeedStatus) -> str:
    if not status.blocked:
        return ""
    texts = texts_of(status.tables)
    rows = [(texts[name], str(state.applied_tso), str(state.stop)) for name, state in sorted(status.blocked.items())]
    return f'<h3 class="broken">Blocked tables</h3>{_table(("table", "at TSO", "why"), rows)}'


def _ddls(facts: FeedFacts) -> str:
    if not facts.ddls:
        return ""
    rows = [(time_text(ddl.tso), ddl.query) for ddl in facts.ddls]
    return f"<details><summary>Schema changes ({len(rows)})</summary>{_table(('committed', 'DDL'), rows)}</details>"


def _catalogue(facts: FeedFacts) -> str:
    texts = texts_of(facts.status.tables)
    return "".join(_table_entry(facts.status.feed, texts[table.name], table) for table in facts.tables)


_DEFINED_BY = {"file": "the schema file", "ddl": "a DDL", "export": "an export", "wire": "its messages"}


def _table_entry(feed: str, name: str, table: TableFacts) -> str:
    topics = ", ".join(table.topics) or "no row yet"
    lineage = f"topic {topics} → bronze.{feed}_messages → silver.{feed}_events → live.{table.view} → gold.{table.view}"
    columns = [(column.name, column.type, column.comment) for column in table.columns]
    return (
        f"<details><summary>{escape(name)}: {counted(len(columns), 'column')}, "
        f"defined by {_DEFINED_BY[table.source]}</summary>"
        f"<p><code>{escape(lineage)}</code></p>{_table(('column', 'type', 'comment'), columns)}</details>"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
