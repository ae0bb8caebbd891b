"""The report of a comparison as one self-contained HTML page, or as a table in a text format."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from gcaps.config import CONFIGS
from gcaps.errors import ConfigError
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.published import RULES, SOURCES, published_graphs
from gcaps.evaluation.result import FoldResult
from gcaps.files import write_text
from gcaps.report import figures, summary
from gcaps.report.data_set import DataSection, data_section
from gcaps.report.study import ALPHA, FAMILIES, LEAST_RANKED, OURS, STATUS, Study
from gcaps.report.template import environment, read_resource
from gcaps.report.text import FORMATS

_REASON = re.compile(r"(\w+) = .*?(?: \(auto: (.*)\)| has no effect: (.*))")

OnStep = Callable[[str, int, int], None]
"""Called with the name of the next step, its number and the number of steps."""


def write_report(
    comparison: Comparison,
    path: str | Path,
    format: str = "html",  # noqa: A002  # the option's name
    on_step: OnStep | None = None,
) -> None:
    """Write a comparison as a page (``html``) or its main table as ``markdown``, ``latex`` or ``csv``.

    Args:
        comparison: finished or not; what is missing is listed on the page.
        path: the file, replaced atomically.
        format: html, markdown, latex or csv.
        on_step: progress callback, see :data:`OnStep`.
    """
    write_text(path, report_text(comparison, format, on_step))


def report_text(
    comparison: Comparison,
    format: str = "html",  # noqa: A002
    on_step: OnStep | None = None,
) -> str:
    """Return what :func:`write_report` writes."""
    study = Study.of(comparison)
    if format == "html":
        return _page(study, on_step or (lambda what, step, steps: None))
    if format not in FORMATS:
        raise ConfigError(f"unknown format {format!r}; choose html, {', '.join(FORMATS)}")
    return FORMATS[format](study)


def _page(study: Study, on_step: OnStep) -> str:
    script = read_resource("page.js")
    sections: list[DataSection] = []
    for number, planned in enumerate(study.sets):
        on_step(planned.name, number, len(study.sets) + 1)
        sections.append(data_section(study, number))
    on_step("the page", len(study.sets), len(study.sets) + 1)
    rows = summary.table_rows(study)
    outcomes = [outcome for entry in study.entries.values() for outcome in entry.outcomes]
    sizes = {planned.name: published_graphs(planned.name) for planned in study.sets}
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            study=study,
            plan=study.plan,
            many=len(study.sets) > 1,
            single=study.single,
            alone=study.single and len(study.sets) == 1,
            ours=OURS,
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            title=study.title,
            spread_note=summary.spread_note(study),
            least_ranked=LEAST_RANKED,
            headlines=[summary.headline(study, planned.name) for planned in study.sets],
            overall=[text for text in (summary.rank_headline(study), summary.win_counts(study)) if text],
            rows=rows,
            families={key: words for key, (words, _, _) in FAMILIES.items() if any(row.family == key for row in rows)},
            marks=FAMILIES,
            has_published=any(cell.published for row in rows for cell in row.cells),
            protocols=dict.fromkeys(
                (p.protocol, SOURCES[p.source]) for row in rows for cell in row.cells for p in cell.published
            ),
            protocol_rules=RULES,
            other_sizes={
                p.name: (size, p.graphs) for p in study.sets if (size := sizes[p.name]) not in (None, p.graphs)
            },
            alpha=ALPHA,
            sections=sections,
            gains=None if study.single else figures.rule_gains(study),
            with_epochs=[e for p in study.sets for e in study.complete(p.name) if len(e.protocols) > 1],
            baseline=study.baseline(study.sets[0].name),
            set_numbers={planned.name: number for number, planned in enumerate(study.sets)},
            diagram=None if study.ranks is None else figures.critical_difference_diagram(study.ranks, study.names),
            done=sum(outcome.status == "done" for outcome in outcomes),
            cells=len(outcomes) + len(study.missing),
            hours=sum(outcome.seconds for outcome in outcomes) / 3600,
            missing=_missing(study),
            commands=list(dict.fromkeys(outcome.command or study.plan.command for outcome in outcomes))
            or [study.plan.command],
            settings={label: settings_of(study, label) for label in study.names},
            versions=_versions(study),
        )
    )


def _missing(study: Study) -> list[dict[str, Any]]:
    """Return the incomplete entries and how many of their cells failed or have not been run."""
    found = []
    for entry in study.entries.values():
        if not entry.complete:
            counts = {words: sum(o.status == status for o in entry.outcomes) for status, words in STATUS.items()}
            counts["not run yet"] = entry.planned - len(entry.outcomes)
            what = ", ".join(f"{count} {words}" for words, count in counts.items() if count)
            found.append({"entry": entry, "what": what})
    return found


@dataclass(frozen=True)
class Setting:
    """A row of the table of settings."""

    name: str
    given: str
    varied: bool
    """Whether the value was chosen from several candidates."""
    resolved: str
    """Value after ``auto`` was resolved; empty where it is the given one."""
    reason: str
    """Reason why ``auto`` was resolved to it."""
    default: str
    """Empty where the default was given, or is not known."""
    meaning: str


def settings_of(study: Study, label: str) -> list[Setting]:
    """Return the settings of a method on all data sets: as given, and what ``auto`` was resolved to."""
    entries = [entry for (_, name), entry in study.entries.items() if name == label]
    kind = CONFIGS.get(entries[0].method or "")
    fields = {} if kind is None else kind.model_fields
    defaults = {} if kind is None else kind().to_dict()
    resolved = {entry.data: [fold.resolved for fold in entry.folds] for entry in entries}
    names = dict.fromkeys(name for entry in entries for config in entry.configs for name in config)
    names |= dict.fromkeys(name for folds in resolved.values() for fold in folds for name in fold)
    found = []
    for name in names:
        given = {e.data: _distinct(config[name] for config in e.configs if name in config) for e in entries}
        after = {data: _distinct(fold[name] for fold in folds if name in fold) for data, folds in resolved.items()}
        default = setting_text(defaults[name]) if name in defaults else ""
        given_text = _by_data({data: " | ".join(map(setting_text, values)) for data, values in given.items()})
        resolved_text = _by_data({data: _range(values) for data, values in after.items()})
        found.append(
            Setting(
                name=name,
                given=given_text or "–",
                varied=any(len(values) > 1 for values in given.values()),
                resolved="" if resolved_text == given_text else resolved_text,
                reason=_by_data({entry.data: "; ".join(_reasons(entry.folds, name)) for entry in entries}),
                default="" if not given_text or default == given_text else default,
                meaning=(fields[name].description or "") if name in fields else "",
            )
        )
    return found


def _reasons(folds: Iterable[FoldResult], name: str) -> list[str]:
    """Return why a setting was resolved to each of its values; of folds that agree, the reason of the first."""
    found: dict[str, str] = {}
    for fold in folds:
        for match in filter(None, map(_REASON.fullmatch, fold.resolution)):
            if match[1] == name:
                reason = f"no effect: {match[3]}" if match[3] else match[2]
                found.setdefault(setting_text(fold.resolved.get(name)), reason)
    return list(found.values())


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _range(values: list[Any]) -> str:
    """Return the value all folds agree on, the range of numbers, or all values."""
    if len(values) > 1 and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return f"{setting_text(min(values))} to {setting_text(max(values))}"
    return " | ".join(map(setting_text, values))


def _by_data(texts: Mapping[str, str]) -> str:
    """Return the text that all data sets share, or the text of each."""
    known = {data: text for data, text in texts.items() if text}
    if len(set(known.values())) <= 1:
        return next(iter(known.values()), "")
    return "; ".join(f"{data}: {text}" for data, text in known.items())


def setting_text(value: Any) -> str:
    """Format the value of a setting as it is given on the command line."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ",".join(map(setting_text, value))
    return json.dumps(value, ensure_ascii=False, default=str)


def _versions(study: Study) -> list[tuple[str, str]]:
    """Return the versions of the plan, and others that cells were computed with."""
    found: dict[str, dict[str, None]] = {}
    outcomes = [outcome for entry in study.entries.values() for outcome in entry.outcomes]
    for versions in (study.plan.versions, *(outcome.versions for outcome in outcomes)):
        for key, value in versions.items():
            found.setdefault(key, {})[value] = None
    return [(key, ", ".join(values)) for key, values in found.items()]
