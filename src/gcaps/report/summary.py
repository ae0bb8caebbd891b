"""The main result of a comparison: a headline in words and the table of methods by data sets."""

from __future__ import annotations

from dataclasses import dataclass, field

from markupsafe import Markup, escape

from gcaps.evaluation.metrics import METRICS, Metric
from gcaps.evaluation.published import SOURCES, Published, published
from gcaps.evaluation.result import Summary
from gcaps.evaluation.statistics import PairedTest
from gcaps.report.study import ALPHA, LEAST_RANKED, OURS, Study

ACCURACY = METRICS["accuracy"]
"""The metric of published results."""


def percent(mean: float, std: float | None = None, digits: int = 2) -> str:
    """Format a share of one as ``66.01`` or, with its standard deviation, as ``66.01 ± 5.91``."""
    return ACCURACY.text(mean, std, digits)


def spread(summary: Summary, digits: int = 2, metric: Metric = ACCURACY) -> str:
    """Format a summary, with the standard deviation if there is more than one fold."""
    return metric.text(summary.mean, summary.std if len(summary.folds) > 1 else None, digits)


def with_unit(text: str, metric: Metric) -> str:
    """Add the sign of a percentage."""
    return f"{text} %" if metric.percent else text


def points(difference: float, digits: int = 2, metric: Metric = ACCURACY, like: float | None = None) -> str:
    """Format a difference of two values with its sign, in points where they are percentages; ``0.00`` has none."""
    return metric.difference(difference, digits, like)


def repetition_text(summary: Summary, metric: Metric = ACCURACY, digits: int = 2) -> str:
    """Format the spread over repetitions, ``±0.81 over 5 repetitions``; empty where there is only one."""
    std = summary.repetition_std
    if std is None:
        return ""
    shown = metric.text(summary.mean, std, digits).partition("±")[2].strip()
    return f"± {shown} over {len(summary.repetitions)} repetitions"


def spread_note(study: Study) -> str:
    """Say what ± means in tables."""
    again = study.repeats > 1
    note = f"mean ± standard deviation over the folds{' of all repetitions' if again else ''} (divided by n)"
    return note + ("; small: standard deviation of the repetitions' means (divided by n − 1)" if again else "")


def p_text(p: float) -> str:
    """Format a p-value with three decimals, or as ``< 0.001``."""
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"


def headline(study: Study, data: str) -> Markup:
    """Return one or two sentences about a data set, as HTML with every name escaped."""
    entries = study.complete(data)
    if study.single:
        return _single(study, data)
    if not entries:
        return Markup("On <strong>{}</strong> no method has a result yet.").format(data)
    best, metric = entries[0], study.metric(data)
    value = best.protocols["honest"]
    start = Markup("On <strong>{}</strong>, <strong>{}</strong> has the {} honest {}, {}").format(
        data,
        best.name.short,
        "highest" if metric.greater_is_better else "lowest",
        metric.title,
        with_unit(spread(value, 1, metric), metric),
    )
    if len(entries) == 1:
        return start + Markup("; no other method has a result yet.")
    ours = next((entry for entry in entries if entry.label == OURS), None)
    other = entries[1] if ours is None or best is ours else ours
    gap = metric.sign * (value.mean - other.protocols["honest"].mean)
    if abs(gap) < 5e-7:
        return start + Markup("; {} is level with it.").format(other.name.short)
    words = "; {} is {} behind" if other is ours else ", {1} ahead of {0}"
    verdict = _verdict(study.tests[data].get((best.label, other.label)))
    return start + Markup(words).format(other.name.short, _amount(gap, metric)) + Markup(f"{verdict}.")


def _amount(gap: float, metric: Metric) -> str:
    """A difference without its sign."""
    text = metric.difference(abs(gap), 1).lstrip("+")
    return f"{text} points" if metric.percent else text


def _single(study: Study, data: str) -> Markup:
    """Return the headline metric of the only method against a prediction that does not look at the graph."""
    entry, majority = next(iter(study.of_set(data)), None), study.majority(data)
    if entry is None or entry.honest is None:
        status = "not planned" if entry is None else entry.status
        return Markup("On <strong>{}</strong> there is no result yet: {}.").format(data, status)
    metric, honest = entry.metric, entry.honest
    shown = with_unit(spread(honest, 1, metric), metric)
    if metric.name != "accuracy" or majority is None:
        baseline = study.baseline(data)
        text = Markup("On <strong>{}</strong>, <strong>{}</strong> has an honest {} of <strong>{}</strong>").format(
            data, entry.name.short, metric.title, shown
        )
        if baseline is None:
            return text + Markup(".")
        words = Markup("; {} gives {}.")
        return text + words.format(baseline.words, with_unit(metric.text(baseline.value, digits=1), metric))
    gain = honest.mean - majority.share
    if abs(gain) < 5e-7:
        against = Markup("as many as")
    else:
        against = Markup(f"{abs(100 * gain):.1f} points {'more' if gain > 0 else 'fewer'} than")
    text = Markup(
        "<strong>{}</strong> classifies <strong>{}</strong> of the test graphs of <strong>{}</strong> correctly, "
        "{} always predicting the most frequent class “{}” ({} %)."
    )
    return text.format(entry.name.short, shown, data, against, majority.name, percent(majority.share, digits=1))


def _verdict(test: PairedTest | None) -> str:
    if test is None:
        return ", and a single division into training and test graphs cannot show whether the difference is significant"
    words = "a significant difference" if test.holm < ALPHA else "a difference that is not significant"
    return f", {words} ({_p_equals(test.p)}, corrected {escape(p_text(test.holm))})"


def paired_words(study: Study, data: str) -> str:
    """Say what the paired tests of a data set are over: its folds, or the divisions of its repetitions."""
    count, planned = study.divisions(data), study.plan.of(data)
    used = {len(folds) for folds in planned.folds.values()}
    seeds = len(planned.folds)
    if count < 2:
        return "one division into training and test graphs, which is too few for a test"
    what = (
        f"{count} repetitions" if used == {1} else f"{count} folds" + (f" of {seeds} repetitions" if seeds > 1 else "")
    )
    return f"{what}, n_test / n_train = {study.test_to_train(data):.2g}"


def _p_equals(p: float) -> str:
    return f"p {'' if p < 0.0005 else '= '}{escape(p_text(p))}"


def rank_headline(study: Study) -> Markup:
    """Return the result over all data sets; empty unless several methods ran on enough data sets."""
    if len(study.sets) < LEAST_RANKED or study.single:
        return Markup("")
    ranks = study.ranks
    if ranks is None:
        return Markup("Too few entries are complete to rank the methods over the data sets.")
    text = Markup("Over {} data sets <strong>{}</strong> has the best average rank ({:.2f} of {})").format(
        len(ranks.data), study.names[ranks.methods[0]].short, ranks.average[0], len(ranks.methods)
    )
    if OURS in ranks.methods[1:]:
        text += Markup(f"; {study.names[OURS].short} has {ranks.average[ranks.methods.index(OURS)]:.2f}")
    verdict = "differ significantly" if ranks.p < ALPHA else "do not differ significantly"
    return text + Markup(f". The methods {verdict} in rank (Friedman test, {_p_equals(ranks.p)}).")


def win_counts(study: Study) -> Markup:
    """Return on how many data sets GCAPS-CNN is the best, close to it or worse; empty where it was not compared."""
    compared = [
        planned.name
        for planned in study.sets
        if len(entries := study.complete(planned.name)) > 1 and any(entry.label == OURS for entry in entries)
    ]
    if len(compared) < LEAST_RANKED:
        return Markup("")
    best = sum(study.best(data) == OURS for data in compared)
    near = sum(study.near_best(data, OURS) for data in compared)
    return Markup(
        f"Of {len(compared)} data sets, {study.names[OURS].short} is the best on {best}, not significantly worse than "
        f"the best on {near}, and significantly worse on {len(compared) - best - near}."
    )


@dataclass(frozen=True)
class TableCell:
    """One method on one data set."""

    honest: Summary | None = None
    """None where there is no result."""
    partial: Summary | None = None
    """Mean over the done folds of an unfinished entry; not compared with others."""
    status: str = ""
    """Reason why there is no result."""
    error: str | None = None
    best: bool = False
    near: bool = False
    """Not significantly worse than the best."""
    published: list[Published] = field(default_factory=list)
    metric: Metric = ACCURACY

    @property
    def text(self) -> str:
        """The headline metric with its standard deviation, or the status."""
        return self.status if self.honest is None else spread(self.honest, metric=self.metric)

    @property
    def repetitions(self) -> str:
        """The spread over repetitions; empty where there is only one."""
        return "" if self.honest is None else repetition_text(self.honest, self.metric)


@dataclass(frozen=True)
class TableRow:
    """One method on all data sets."""

    label: str
    short: str
    long: str
    family: str
    """``published`` for a method that only has published results."""
    cells: list[TableCell]
    """One for each data set."""
    rank: float | None = None


def table_rows(study: Study) -> list[TableRow]:
    """Return a row for each method of the comparison, then one for each method that only has published results."""
    others = {planned.name: published_beside(study, planned.name) for planned in study.sets}
    ranks = {} if study.ranks is None else dict(zip(study.ranks.methods, study.ranks.average, strict=True))
    rows = [
        TableRow(
            label=label,
            short=name.short,
            long=name.long,
            family=name.family,
            cells=[
                _cell(study, planned.name, label, [row for row in others[planned.name] if row.method in name.published])
                for planned in study.sets
            ],
            rank=ranks.get(label),
        )
        for label, name in study.names.items()
    ]
    ours = {known for name in study.names.values() for known in name.published}
    rest = dict.fromkeys((row.source, row.method) for found in others.values() for row in found)
    for source, method in rest:
        if method in ours:
            continue
        cells = [[row for row in others[p.name] if (row.source, row.method) == (source, method)] for p in study.sets]
        short = method.replace("-", " ") if " " not in method and method.islower() else method
        rows.append(
            TableRow(method, short, SOURCES[source], "published", [TableCell(published=found) for found in cells])
        )
    return rows


def _cell(study: Study, data: str, label: str, others: list[Published]) -> TableCell:
    entry = study.entries.get((data, label))
    if entry is None:
        return TableCell(status="–", published=others)
    return TableCell(
        honest=entry.honest,
        partial=None if entry.complete else entry.protocols.get("honest"),
        status=entry.status,
        error=entry.error,
        best=not study.single and study.best(data) == label,
        near=study.near_best(data, label),
        published=others,
        metric=study.metric(data),
    )


def published_beside(study: Study, data: str) -> list[Published]:
    """Return the published results of a data set, which are accuracies: none where another metric is shown."""
    if study.metric(data).name != "accuracy":
        return []
    return [row for row in published(data) if row.status != "not reported"]


def published_text(row: Published) -> str:
    """Return the published accuracy, or the words of the source where it has none."""
    return row.status or "" if row.mean is None else percent(row.mean, row.std)
