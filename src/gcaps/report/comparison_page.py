"""One self-contained HTML page about a comparison, and the same table in other formats."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from gcaps.errors import ConfigError
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.published import RULES, SOURCES
from gcaps.files import write_text
from gcaps.report import aggregate, headline
from gcaps.report import comparison_figures as figures
from gcaps.report.comparison_text import FORMATS
from gcaps.report.main_table import published_text, spread, table_rows
from gcaps.report.names import FAMILIES, method_name
from gcaps.report.set_view import SetView, set_view
from gcaps.report.study import ALPHA, STATUS, Study

_HERE = resources.files("gcaps.report")


def write_comparison(
    comparison: Comparison,
    path: str | Path,
    format: str = "html",  # noqa: A002  # the option's name
    on_step: Callable[[str, int, int], None] | None = None,
) -> None:
    """Write a comparison as a page (``html``) or its table as ``markdown``, ``latex`` or ``csv``.

    Args:
        comparison: finished or not; what is missing is named.
        path: the file; what stood there before is replaced only by a complete one.
        format: html, markdown, latex or csv.
        on_step: told what is done next, which step that is and of how many.
    """
    write_text(path, comparison_text(comparison, format, on_step))


def comparison_text(
    comparison: Comparison,
    format: str = "html",  # noqa: A002
    on_step: Callable[[str, int, int], None] | None = None,
) -> str:
    """What :func:`write_comparison` writes."""
    study = Study.of(comparison)
    if format == "html":
        return _page(study, on_step or (lambda what, step, steps: None))
    if format not in FORMATS:
        raise ConfigError(f"there is no format {format!r}; there are html, {', '.join(FORMATS)}")
    return FORMATS[format](study)


def _page(study: Study, on_step: Callable[[str, int, int], None]) -> str:
    environment = Environment(
        loader=FunctionLoader(lambda name: _HERE.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=aggregate.percent,
        points=aggregate.points,
        p=headline.p_text,
        spread=spread,
        published=published_text,
        method=lambda method: method_name(method).short,
    )
    script = _HERE.joinpath("comparison.js").read_text(encoding="utf-8")
    views: list[SetView] = []
    for number, planned in enumerate(study.sets):
        on_step(planned.name, number, len(study.sets) + 1)
        views.append(set_view(study, number))
    on_step("the page", len(study.sets), len(study.sets) + 1)
    rows = table_rows(study)
    outcomes = [outcome for entry in study.entries.values() for outcome in entry.outcomes]
    return environment.get_template("comparison.html.j2").render(
        study=study,
        plan=study.plan,
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        answers=[headline.answer(study, planned.name) for planned in study.sets],
        summary=[text for text in (headline.summary(study), headline.standing(study)) if text],
        rows=rows,
        families={key: words for key, (words, _, _) in FAMILIES.items() if any(row.family == key for row in rows)},
        marks=FAMILIES,
        has_published=any(cell.published for row in rows for cell in row.cells),
        protocols=dict.fromkeys(
            (p.protocol, SOURCES[p.source]) for row in rows for cell in row.cells for p in cell.published
        ),
        protocol_rules=RULES,
        alpha=ALPHA,
        views=views,
        gains=figures.rule_gains(study),
        gaps=_gaps(study),
        diagram=None if study.ranks is None else figures.critical_difference_diagram(study.ranks),
        costs={method: (e.seconds, e.peak_mib) for (_, method), e in study.entries.items()},
        done=sum(outcome.status == "done" for outcome in outcomes),
        cells=len(outcomes) + len(study.missing),
        hours=sum(outcome.seconds for outcome in outcomes) / 3600,
        absent=_absent(study),
        configs=[(method_name(method), _settings(configs)) for method, configs in study.plan.methods.items()],
        versions=_versions(study),
    )


def _gaps(study: Study) -> list[dict[str, Any]]:
    """Every complete entry with epochs: its number under each rule."""
    return [
        {"number": number, "data": planned.name, "name": method_name(entry.method), "rules": entry.protocols}
        for number, planned in enumerate(study.sets)
        for entry in study.complete(planned.name)
        if len(entry.protocols) > 1
    ]


def _absent(study: Study) -> list[dict[str, Any]]:
    """What is not done, by data set and method, with the first error's words."""
    found = []
    for (data, method), entry in study.entries.items():
        if entry.complete:
            continue
        counts = {words: sum(o.status == status for o in entry.outcomes) for status, words in STATUS.items()}
        counts["not run yet"] = entry.planned - len(entry.outcomes)
        what = ", ".join(f"{count} {words}" for words, count in counts.items() if count)
        found.append({"data": data, "name": method_name(method), "entry": entry, "what": what})
    return found


def _settings(configs: list[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    """Each setting with its value, or with all its values where it is chosen from several."""
    keys = dict.fromkeys(key for config in configs for key in config)
    found = []
    for key in keys:
        values = list(dict.fromkeys(aggregate.shown(config[key]) for config in configs if key in config))
        found.append((key, " | ".join(values), len(values) > 1))
    return found


def _versions(study: Study) -> list[tuple[str, str]]:
    """The plan's versions and, where cells were computed with others, those as well."""
    found: dict[str, dict[str, None]] = {}
    outcomes = [outcome for entry in study.entries.values() for outcome in entry.outcomes]
    for versions in (study.plan.versions, *(outcome.versions for outcome in outcomes)):
        for key, value in versions.items():
            found.setdefault(key, {})[value] = None
    return [(key, ", ".join(values)) for key, values in found.items()]
