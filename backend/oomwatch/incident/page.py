"""A report as one HTML file that needs nothing else: no network, no server. Whatever came from outside is escaped."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from html import escape

import msgspec

from oomwatch import wire
from oomwatch.catalogue import entries, say
from oomwatch.figures import duration, named_figure
from oomwatch.incident.charts import LOOK, PHASE_COLOURS, charts
from oomwatch.incident.panels import Panel, flat_rows, panels
from oomwatch.incident.report import Incident, Message

_LIGHT = "--page:#fff;--text:#1c1c1c;--muted:#5f6368;--line:#dcdfe3;--code:#f2f3f5;--bad:#b00020;--demo:#fff3cd"
_DARK = "--page:#14181d;--text:#e4e7eb;--muted:#9aa3ad;--line:#333b45;--code:#1f252c;--bad:#ff8a80;--demo:#4a3c0e"
_STYLE = f"""\
:root{{color-scheme:light;{_LIGHT}}}
@media screen and (prefers-color-scheme:dark){{:root{{color-scheme:dark;{_DARK}}}}}
body{{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--page)}}
body{{max-width:72rem;margin:2rem auto;padding:0 1rem}}
h1{{font-size:1.4rem;margin-bottom:.2rem}}h2{{font-size:1.1rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}}
h3{{font-size:.95rem;margin:1.2rem 0 0}}table{{border-collapse:collapse;width:100%;font-size:.9rem}}
th,td{{text-align:left;vertical-align:top;padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line)}}
code,pre{{font:13px ui-monospace,monospace;background:var(--code);padding:.1rem .3rem}}
code,pre{{white-space:pre-wrap;word-break:break-word}}
.muted{{color:var(--muted)}}
.chip{{display:inline-block;padding:0 .5rem;margin:.1rem;border-radius:.6rem;font-size:.85rem}}
.demo{{background:var(--demo);padding:.3rem .6rem}}.critical{{color:var(--bad)}}
h1,p{{overflow-wrap:anywhere}}@media(max-width:45rem){{table{{display:block;overflow-x:auto}}}}
@media print{{h3,.js-plotly-plot{{break-inside:avoid}}}}
{LOOK}"""


def page(incident: Incident, language: wire.Language) -> str:
    """The whole file."""
    title = say("incident.title", language, place=incident.run or incident.node or "", at=_moment(incident.at))
    body = "\n".join(part for part in _parts(incident, title, language) if part)
    return (
        f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _parts(incident: Incident, title: str, language: wire.Language) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="critical">{escape(incident.summary.get(language, ""))}</p>'
    if incident.simulated:
        yield f'<p class="demo">{escape(say("incident.simulated", language))}</p>'
    yield f'<p class="muted">{escape(_where(incident, language))}</p>'
    yield _section("incident.messages", _messages(incident, language), language)
    yield _section("incident.causes", _causes(incident, language), language)
    yield _section("incident.remedies", _remedies(incident, language), language)
    yield _section("incident.alerts", _alerts(incident, language), language)
    yield _section("incident.charts", _charts(incident, language), language)
    yield _section("incident.steps", _steps(incident, language), language)
    yield _section("incident.config", _config(incident), language)
    yield f'<p class="muted">{escape(say("incident.made", language, version=incident.version, id=incident.id))}</p>'


def _section(key: str, content: str, language: wire.Language) -> str:
    return f"<h2>{escape(say(key, language))}</h2>\n{content}" if content else ""


def _where(incident: Incident, language: wire.Language) -> str:
    key = "incident.where_some" if incident.cards_left_out else "incident.where"
    shown, left_out = len(incident.cards), incident.cards_left_out
    return say(key, language, nodes=", ".join(incident.nodes) or "-", shown=shown, all=shown + left_out)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Cells are HTML; an empty table is nothing."""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f"<table><tr>{names}</tr>{body}</table>" if body else ""


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def _messages(incident: Incident, language: wire.Language) -> str:
    head = [say(f"incident.{name}", language) for name in ("time", "node", "message")]
    return _table(head, (_message(one, language) for one in incident.messages))


def _message(message: Message, language: wire.Language) -> tuple[str, str, str]:
    told = msgspec.to_builtins(message.body)
    figures = [
        f"{name} {named_figure(name, value, language)}" for name, value in told.items() if name != "kind" and value
    ]
    origin = message.origin
    by = [f"{origin.actor or ''} {'pid ' + str(origin.pid) if origin.pid else ''}".strip()] if origin else []
    text = f"{told['kind']}: {'; '.join([*by, *figures])}"
    return _moment(message.at), escape(message.node), f"<code>{escape(text)}</code>"


def _causes(incident: Incident, language: wire.Language) -> str:
    items = []
    for cause in incident.causes:
        reasons = "".join(f"<li>{escape(text)}</li>" for one in cause.evidence if (text := one.texts.get(language)))
        name = cause.texts.get(language) or _known(f"cause.{cause.cause}", cause.cause, language)
        phase = f" · {_known(f'phase.{cause.phase}', cause.phase, language)}" if cause.phase else ""
        items.append(f"<li>{escape(name)}{escape(phase)} ({cause.score:.0%})<ul>{reasons}</ul></li>")
    return f"<ol>{''.join(items)}</ol>" if items else ""


def _known(key: str, otherwise: str, language: wire.Language) -> str:
    return say(key, language) if key in entries() else otherwise


def _remedies(incident: Incident, language: wire.Language) -> str:
    items = []
    for remedy in incident.remedies:
        override = f"<br><code>{escape(remedy.override)}</code>" if remedy.override else ""
        price = f'<br><span class="muted">{escape(remedy.price[language])}</span>' if language in remedy.price else ""
        items.append(f"<li>{escape(remedy.texts.get(language, remedy.remedy))}{override}{price}</li>")
    items += [f"<li>{escape(advice)}</li>" for advice in incident.advice.get(language, ())]
    return f"<ul>{''.join(items)}</ul>" if items else ""


def _alerts(incident: Incident, language: wire.Language) -> str:
    """A line for each rule: of sixteen GPUs that say the same the first, and how many they are."""
    told: dict[tuple[str, str], list[wire.Alert]] = {}
    for alert in sorted(incident.alerts, key=lambda alert: alert.fired_at or 0.0):
        if alert.facts.get("incident") != incident.id and alert.fired_at is not None:
            told.setdefault((alert.alert, alert.severity), []).append(alert)
    head = [say(f"incident.{name}", language) for name in ("alert", "severity", "lead", "count", "said")]
    return _table(head, (_alert(of_rule, incident.at, language) for of_rule in told.values()))


def _alert(of_rule: Sequence[wire.Alert], at: float, language: wire.Language) -> tuple[str, ...]:
    first = of_rule[0]
    return (
        escape(first.alert),
        escape(_known(f"severity.{first.severity}", first.severity, language)),
        escape(duration(max(0.0, at - (first.fired_at or at)), language)),
        str(len(of_rule)),
        escape(first.texts[language].summary if language in first.texts else ""),
    )


def _charts(incident: Incident, language: wire.Language) -> str:
    phases = dict.fromkeys(span.phase for span in incident.phases)
    chips = "".join(
        f'<span class="chip" style="background:{PHASE_COLOURS.get(phase, "#cccccc")}55">'
        f"{escape(_known(f'phase.{phase}', phase, language))}</span>"
        for phase in phases
    )
    shown = panels(incident.curves, language)
    moving = [panel for panel in shown if not panel.is_flat]
    drawn = "\n".join(f"<h3>{escape(title)}</h3>{chart}" for title, chart in charts(incident, moving, language))
    told = _flat([panel for panel in shown if panel.is_flat], language)
    return (f"<p>{chips}</p>{drawn}" if drawn else "") + told


def _flat(flat: Iterable[Panel], language: wire.Language) -> str:
    """What stayed as it was: a line of words in place of a chart."""
    head = [say(f"incident.{name}", language) for name in ("series", "place", "stayed")]
    rows = [
        (f"<code>{escape(name)}</code>", escape(where), escape(words))
        for panel in flat
        for name, where, words in flat_rows(panel, language)
    ]
    table = _table(head, rows)
    return f"<h3>{escape(say('incident.flat', language))}</h3>{table}" if table else ""


def _steps(incident: Incident, language: wire.Language) -> str:
    head = [say(f"incident.{name}", language) for name in ("step", "time", "took", "rollout", "length")]
    rows = [
        (
            str(point.step.step),
            _moment(point.at),
            _seconds(point.step.step_seconds, language),
            _seconds(point.step.rollout_seconds, language),
            "" if point.step.response_length_mean_tokens is None else f"{point.step.response_length_mean_tokens:.0f}",
        )
        for point in reversed(incident.steps)
    ]
    return _table(head, rows)


def _seconds(seconds: float | None, language: wire.Language) -> str:
    return "" if seconds is None else escape(duration(seconds, language))


def _config(incident: Incident) -> str:
    lines = [f"{name}={value}" for name, value in sorted(incident.config.items())]
    return f"<pre>{escape(chr(10).join(lines))}</pre>" if lines else ""
