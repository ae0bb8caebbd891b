"""One self-contained HTML page about a result: nothing is loaded from anywhere, so it can be mailed and archived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from gcaps.config import Config
from gcaps.evaluation.published import RULES, SOURCES, published, published_graphs
from gcaps.evaluation.result import Result
from gcaps.files import write_text
from gcaps.report import aggregate, figures

_HERE = resources.files("gcaps.report")


@dataclass(frozen=True)
class Setting:
    """A line of the configuration table."""

    name: str
    value: str
    meaning: str
    """Empty for settings of other methods."""
    default: str | None
    """Only where the value is not the default."""


def write_page(result: Result, path: str | Path, facts: Mapping[str, str] | None = None) -> None:
    """Write the page to ``path``; a page that stood there before is replaced only by a complete one.

    Args:
        result: the evaluation.
        path: the HTML file.
        facts: what else is worth knowing about the data, such as the largest graph, as name and text.
    """
    write_text(path, _render(result, facts or {}))


def _render(result: Result, facts: Mapping[str, str]) -> str:
    environment = Environment(
        loader=FunctionLoader(lambda name: _HERE.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=aggregate.percent, points=aggregate.points)
    name = str(result.data["name"])
    others = published(name)
    known = published_graphs(name)
    counts = aggregate.confusion(result)
    drawn = {
        "protocols": figures.protocol_dots(result, others),
        "loss": figures.loss_curve(result),
        "accuracy": figures.accuracy_curve(result),
        "folds": figures.fold_dots(result),
        "confusion": figures.confusion_matrix(result),
        "probability": figures.probability_histogram(result),
    }
    return environment.get_template("page.html.j2").render(
        result=result,
        name=name,
        honest=result.protocols["honest"],
        baseline=aggregate.baseline(result),
        spread=len(result.folds) > 1,
        tested=int(counts.sum()),
        published=others,
        published_graphs=known if known != result.data["graphs"] else None,
        sources=SOURCES,
        rules=RULES,
        figures={key: None if svg is None else Markup(svg) for key, svg in drawn.items()},
        classes=[
            (title, int(row.sum()), int(row[number]))
            for number, (title, row) in enumerate(zip(aggregate.class_names(result), counts, strict=True))
        ],
        mistakes=aggregate.confident_mistakes(result) if aggregate.has_scores(result) else [],
        wrong=int(counts.sum() - counts.trace()),
        facts=facts,
        settings=_settings(result),
    )


def _settings(result: Result) -> list[Setting]:
    """The configuration as a table; GCAPS-CNN's settings come with their meaning and, where changed, their default."""
    fields = Config.model_fields if result.method == "gcaps" else {}
    defaults = Config().to_dict()
    return [
        Setting(
            name=name,
            value=aggregate.shown(value),
            meaning=(fields[name].description or "") if name in fields else "",
            default=aggregate.shown(defaults[name]) if name in fields and value != defaults[name] else None,
        )
        for name, value in result.config.items()
    ]
