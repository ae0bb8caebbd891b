"""A comparison as a summary for the terminal."""

from __future__ import annotations

from collections import Counter

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.metrics import METRICS, Metric
from gcaps.evaluation.published import RULES, SOURCES, Published
from gcaps.evaluation.result import Summary
from gcaps.report.learning_curve import curve_table
from gcaps.report.members import members_of_folds
from gcaps.report.study import STATUS, Entry, Study
from gcaps.report.summary import (
    p_text,
    paired_words,
    points,
    published_beside,
    published_text,
    repetition_text,
    spread,
    with_unit,
)
from gcaps.report.text import set_names


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the headline metric of a comparison, and all metrics where there is one method and one data set.

    One method on one data set: the headline metric against a prediction that ignores the graph, under every
    rule, all metrics, each target, and the published results. One method on several data sets: a row for each data
    set, a column for each rule. Several methods: a row for each method, a column for each data set.
    """
    study = Study.of(comparison)
    for planned in study.sets:
        for note in planned.notes:
            console.print(Text(f"{planned.name}: {note}", style="dim"))
    entry = study.of_set(study.sets[0].name)[0] if study.single and len(study.sets) == 1 else None
    if entry is not None and entry.honest is not None:
        _print_entry(study, entry, console)
        _print_curves(study, console)
        return
    console.print(_by_rule(study) if study.single else _by_method(study))
    _print_curves(study, console)
    counts = Counter(outcome.status for outcome in comparison.outcomes)
    parts = [f"{counts.pop('done', 0)} cells done", *(f"{count} {STATUS[status]}" for status, count in counts.items())]
    if missing := comparison.missing():
        parts.append(f"{len(missing)} not run")
    console.print(", ".join(parts), highlight=False)
    if any(len(entry.folds) > 1 for entry in study.entries.values()):
        over = "; in brackets: of the repetitions' means (divided by n − 1)" if study.repeats > 1 else ""
        console.print(Text(f"±: {_spread_words(study)}{'' if study.single else over}", style="dim"))
    if len(study.sets) == 1 and study.tests[study.sets[0].name]:
        note = f"p: corrected resampled t-test over {paired_words(study, study.sets[0].name)}; Holm: for all pairs"
        console.print(Text(note, style="dim"))


def _print_curves(study: Study, console: Console) -> None:
    """Print the learning curves of each data set that has them."""
    for planned in study.sets:
        if (table := curve_table(study, planned.name)) is not None:
            console.print()
            console.print(table)
            console.print()


def _spread_words(study: Study) -> str:
    again = " of all repetitions" if study.repeats > 1 else ""
    return f"standard deviation over the folds{again} (divided by n)"


def _print_entry(study: Study, entry: Entry, console: Console) -> None:
    console.print()
    console.print(_headline(study, entry))
    console.print()
    if len(entry.protocols) > 1:
        console.print(_protocols(entry))
    console.print(_metrics(entry))
    if len(study.plan.of(entry.data).targets) > 1:
        console.print(_targets(study, entry))
    if len(entry.folds) > 1:
        console.print(Text(f"±: {_spread_words(study)}\n", style="dim"))
    if (members := members_of_folds(entry.folds)) is not None:
        console.print(members)
    rows = published_beside(study, entry.data)
    if rows:
        console.print(Text(f"Published for {entry.data}", style="bold"))
        console.print(_published(rows))
        console.print(_legend(rows))
        console.print()


def _headline(study: Study, entry: Entry) -> Text:
    honest, folds, metric = entry.protocols["honest"], len(entry.folds), entry.metric
    planned, baseline = study.plan.of(entry.data), study.baseline(entry.data)
    again = f" of {len(entry.repetitions)} repetitions" if len(entry.repetitions) > 1 else ""
    undefined = f", {folds - len(honest.folds)} of them undefined" if len(honest.folds) < folds else ""
    width = max(16, len(f"honest {metric.title}") + 1, len(baseline.title) + 1 if baseline else 0)
    title = f"honest {metric.title}"
    text = Text.assemble(
        (f"{entry.data} · {entry.label}", "bold"),
        f"\n{title:<{width}} ",
        (with_unit(spread(honest, 1, metric), metric), "bold cyan"),
        (f"  over {folds} fold{'s' if folds > 1 else ''}{again}{undefined}, {planned.graphs} graphs", "dim"),
    )
    if over := repetition_text(honest, metric, 1):
        mean = with_unit(metric.text(honest.mean, digits=1), metric)
        text.append(f"\n{'':<{width}} {mean} {over}")
        text.append("  standard deviation of their means (divided by n − 1)", "dim")
    if baseline is not None:
        gain = honest.mean - baseline.value
        shown = points(gain, 1, metric, like=honest.mean)
        text.append(f"\n{baseline.title:<{width}} {with_unit(metric.text(baseline.value, digits=1), metric)}")
        text.append(f"  {baseline.words}: ", "dim")
        text.append(f"{shown} points" if metric.percent else shown, "green" if metric.sign * gain > 0 else "red")
    return text


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for place, column in enumerate(columns):
        number = column in ("accuracy, %", "vs honest", "value", "known") or (place > 1 and columns[1] == "known")
        table.add_column(column, justify="right" if number else "left", no_wrap=number)
    return table


def _protocols(entry: Entry) -> Table:
    table = _table("rule", entry.metric.heading, "vs honest", "how it is chosen")
    honest = entry.protocols["honest"]
    for rule, summary in entry.protocols.items():
        main = rule == "honest"
        table.add_row(
            Text(rule, style="bold" if main else ""),
            Text(spread(summary, metric=entry.metric), style="bold cyan" if main else ""),
            "–" if main else points(summary.mean - honest.mean, metric=entry.metric),
            Text(summary.rule, style="" if main else "dim"),
        )
    return table


def _metrics(entry: Entry) -> Table:
    """Return the table of all metrics."""
    table = _table("metric", "value", "")
    for name, summary in entry.metrics.items():
        metric, main = METRICS[name], name == entry.metric.name
        notes = ["" if metric.greater_is_better else "lower is better", entry.undefined(name)]
        table.add_row(
            Text(metric.heading, style="bold" if main else ""),
            Text(spread(summary, metric=metric), style="bold cyan" if main else ""),
            Text(", ".join(filter(None, notes)), style="dim"),
        )
    return table


def _targets(study: Study, entry: Entry) -> Table:
    """Return the table of targets: their known values and metrics, mean over the folds."""
    shown = [METRICS[name] for name in entry.metrics]
    shown = [entry.metric, *(metric for metric in shown if metric.name != entry.metric.name)][:4]
    table = _table("target", "known", *(metric.heading for metric in shown))
    for number, name in enumerate(study.plan.of(entry.data).targets):
        found = entry.target_metrics(number)
        values = [metric.text(found[metric.name]) if metric.name in found else "–" for metric in shown]
        table.add_row(Text(name), f"{found['known']:.0f}", *values)
    return table


def _published(rows: list[Published]) -> Table:
    table = _table("method", "accuracy, %", "source", "protocol")
    for row in rows:
        accuracy = Text(published_text(row), style="dim" if row.mean is None else "")
        table.add_row(Text(row.method), accuracy, Text(SOURCES[row.source]), Text(row.protocol))
    return table


def _legend(rows: list[Published]) -> Text:
    used = dict.fromkeys(row.protocol for row in rows)
    lines = [f"{protocol}: {RULES.get(protocol, protocol)}" for protocol in used]
    return Text("\n".join([*lines, "Accuracies of different protocols are not directly comparable."]), style="dim")


def _by_rule(study: Study) -> Table:
    """Return the table of one method: data sets by rules."""
    rules = list(dict.fromkeys(rule for entry in study.entries.values() for rule in entry.protocols)) or ["honest"]
    table = Table(box=None, pad_edge=False)
    unit = ", %" if study.shared_metric is not None and study.shared_metric.percent else ""
    table.add_column(Text(f"{next(iter(study.names))}{unit}"))
    for rule in rules:
        table.add_column(rule, justify="right")
    for entry, name in zip(study.entries.values(), set_names(study), strict=True):
        known = [spread(entry.protocols[rule], 1, entry.metric) if rule in entry.protocols else "–" for rule in rules]
        table.add_row(Text(name), *(known if entry.complete else [Text(entry.status)]))
    return table


def _by_method(study: Study) -> Table:
    """Return the table of several methods: labels by data sets."""
    table = Table(box=None, pad_edge=False)
    metric = study.shared_metric
    plain = metric is not None and metric.name == "accuracy"
    table.add_column("honest, %" if plain else "honest" if metric is None else f"honest {metric.heading}")
    for name in set_names(study):
        table.add_column(Text(name), justify="right")
    tested = study.tests[study.sets[0].name] if len(study.sets) == 1 else {}
    for title in ("vs best", "p", "Holm") if tested else ():
        table.add_column(title, justify="right")
    for label in study.names:
        entries = [study.entries.get((planned.name, label)) for planned in study.sets]
        cells = ["–" if e is None else e.status if e.honest is None else _spreads(e.honest, e.metric) for e in entries]
        if tested:
            cells += _against_best(study, label)
        table.add_row(Text(label), *map(Text, cells))
    return table


def _against_best(study: Study, label: str) -> list[str]:
    """The difference to the best method of the only data set, and its p-values."""
    data = study.sets[0].name
    test = study.tests[data].get((label, study.best(data) or ""))
    if test is None:
        return ["–"] * 3
    mean = study.entries[data, label].protocols["honest"].mean
    return [points(test.difference, 1, study.metric(data), like=mean), p_text(test.p), p_text(test.holm)]


def _spreads(summary: Summary, metric: Metric) -> str:
    """The spread over the folds, and in brackets that over repetitions."""
    over = repetition_text(summary, metric, 1).partition(" over ")[0]
    return spread(summary, 1, metric) + (f" ({over})" if over else "")
