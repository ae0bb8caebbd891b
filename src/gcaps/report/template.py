"""Templates of pages: where they are, and the filters they use."""

from __future__ import annotations

from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from gcaps.escaping import visible
from gcaps.evaluation.metrics import Metric
from gcaps.report import summary


def read_resource(name: str) -> str:
    """Return the text of a template, style sheet or script of this package."""
    return resources.files("gcaps.report").joinpath(name).read_text(encoding="utf-8")


def environment() -> Environment:
    """Return the environment of the templates: everything is escaped, and an unknown name is an error."""
    made = Environment(
        loader=FunctionLoader(read_resource),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        percent=summary.percent,
        points=summary.points,
        p=summary.p_text,
        spread=summary.spread,
        unit=summary.with_unit,
        value=_value,
        title=_title,
        repetitions=summary.repetition_text,
        published=summary.published_text,
    )
    return made


def _shown(value: Any) -> Any:
    """Make control characters visible in texts; what is HTML already has none."""
    return visible(value, keep="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


def _value(value: float, metric: Metric, digits: int = 2) -> str:
    return metric.text(value, digits=digits)


def _title(words: str) -> str:
    """Capitalise the first letter and leave the others."""
    return words[:1].upper() + words[1:]
