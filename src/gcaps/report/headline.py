"""The answer in words: who is best on a data set, where GCAPS-CNN stands, and whether the folds bear it out."""

from __future__ import annotations

from markupsafe import Markup, escape

from gcaps.evaluation.significance import PairedTest
from gcaps.report.aggregate import percent
from gcaps.report.names import method_name
from gcaps.report.study import ALPHA, Study

OURS = "gcaps"


def answer(study: Study, data: str) -> Markup:
    """One or two sentences about a data set, as HTML with every name escaped."""
    ahead = study.complete(data)
    if not ahead:
        return Markup("On <strong>{}</strong> no method has a number yet.").format(data)
    best = ahead[0]
    honest = best.protocols["honest"]
    spread = honest.std if len(honest.folds) > 1 else None
    start = Markup("On <strong>{}</strong> the best honest method is <strong>{}</strong> with {} %").format(
        data, method_name(best.method).short, percent(honest.mean, spread, 1)
    )
    if len(ahead) == 1:
        return start + Markup("; no other method has a number yet.")
    methods = [entry.method for entry in ahead]
    other = OURS if OURS in methods and best.method != OURS else methods[1]
    test = study.tests(data).get((best.method, other))
    gap = honest.mean - study.entry(data, other).protocols["honest"].mean
    if best.method == OURS or OURS not in methods:
        tail = f", {abs(100 * gap):.1f} points ahead of {escape(method_name(other).short)}"
    else:
        tail = f"; {escape(method_name(other).short)} is {abs(100 * gap):.1f} points behind"
    if abs(gap) < 5e-7:
        return start + Markup(f"; {escape(method_name(other).short)} is level with it.")
    return start + Markup(tail) + Markup(f"{_verdict(test)}.")


def _verdict(test: PairedTest | None) -> str:
    if test is None:
        return ", and one fold cannot tell whether that means anything"
    word = "a significant difference" if test.holm < ALPHA else "a difference that is not significant"
    sign = "" if test.p < 0.0005 else "= "
    return f", {word} (p {escape(sign + p_text(test.p))}, corrected {escape(p_text(test.holm))})"


def p_text(p: float) -> str:
    """Three decimals, or that it is smaller."""
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"


def summary(study: Study) -> Markup:
    """What holds over all data sets; empty where there is one only."""
    if len(study.sets) < 2:
        return Markup("")
    ranks = study.ranks
    if ranks is None:
        return Markup("Too few numbers are complete to rank the methods over the data sets.")
    first = method_name(ranks.methods[0]).short
    verdict = "differ significantly" if ranks.p < ALPHA else "do not differ significantly"
    text = Markup("Over {} data sets <strong>{}</strong> has the best average rank ({:.2f} of {})").format(
        len(ranks.data), first, ranks.average[0], len(ranks.methods)
    )
    if OURS in ranks.methods[1:]:
        place = ranks.average[ranks.methods.index(OURS)]
        text += Markup(f"; {method_name(OURS).short} has {place:.2f}")
    sign = "" if ranks.p < 0.0005 else "= "
    return text + Markup(f". The methods {verdict} in rank (Friedman, p {escape(sign + p_text(ranks.p))}).")


def standing(study: Study) -> Markup:
    """On how many data sets GCAPS-CNN leads, keeps up or is shown to be behind; empty where it does not take part."""
    sets = [planned.name for planned in study.sets if study.entries.get((planned.name, OURS)) is not None]
    told = [data for data in sets if study.entry(data, OURS).honest is not None and len(study.complete(data)) > 1]
    if len(study.sets) < 2 or not told:
        return Markup("")
    leads = sum(study.best(data) == OURS for data in told)
    near = sum(study.near_best(data, OURS) for data in told)
    return Markup(
        f"{method_name(OURS).short} is the best on {leads} of {len(told)} data sets, not shown to be worse than the "
        f"best on {near} more, and significantly behind on {len(told) - leads - near}."
    )
