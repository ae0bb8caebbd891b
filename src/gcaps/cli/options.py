"""Command-line options made from the configuration's fields, so that each setting is written down once."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gcaps.config import Config, FeatureConfig, NetworkConfig, TrainingConfig

_PANELS: dict[type[BaseModel], str] = {
    FeatureConfig: "Node features",
    NetworkConfig: "Network",
    TrainingConfig: "Training",
}


def with_config(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option for each setting, and ``--config FILE``; it receives them as ``config: Config``.

    An option wins over the file, the file over the defaults.
    """
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "config"]
    made = [_option(name, field) for name, field in Config.model_fields.items()]
    file = inspect.Parameter(
        "config_file",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            Path | None,
            typer.Option("--config", metavar="FILE", help="TOML file with any of the settings below; options win."),
        ],
    )

    @functools.wraps(command)
    def run(*, config_file: Path | None, **given: Any) -> None:
        values = {} if config_file is None else Config.from_toml(config_file)
        for name in Config.model_fields:
            text = given.pop(name)
            if text is not None:
                values[name] = _read(name, text)
        command(**given, config=Config.parse(values))

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    run.__signature__ = inspect.Signature([*parameters, file, *made])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in (*parameters, file, *made)}
    return run


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    panel = next(title for section, title in _PANELS.items() if name in section.model_fields)
    default = "none" if field.default is None else field.default
    switch = field.annotation is bool
    flag = "--" + name.replace("_", "-")
    option = typer.Option(
        f"{flag}/--no-{flag[2:]}" if switch else flag,
        metavar=None if switch else _metavar(field.annotation),
        help=f"{field.description} (default {('on' if default else 'off') if switch else default})",
        rich_help_panel=panel,
        show_default=False,
    )
    annotation = Annotated[bool | None, option] if switch else Annotated[str | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _metavar(annotation: Any) -> str:
    parts = [p for p in get_args(annotation) if p is not type(None)] if _is_union(annotation) else [annotation]
    names = []
    for part in parts:
        if get_origin(part) is Literal:
            names.append("|".join(map(str, get_args(part))))
        elif get_origin(part) is tuple:
            names.append(",".join(map(str, get_args(get_args(part)[0]))))
        else:
            names.append({"int": "N", "float": "X"}.get(part.__name__, part.__name__.upper()))
    return "|".join(names)


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _read(name: str, text: str | bool) -> Any:
    """An option's text as the value that the configuration checks."""
    if isinstance(text, bool):
        return text
    if name == "features" and text != "auto":
        return tuple(text.split(","))
    if text.lower() == "none":
        return None
    return text
