"""Command-line options made from the fields of a method's settings."""

from __future__ import annotations

import difflib
import functools
import inspect
import types
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gcaps.config import CapsuleConfig, ClassConfig, Config, FeatureConfig, GraphFeatureConfig, Section, TrainingConfig
from gcaps.documents import read_toml
from gcaps.errors import ConfigError
from gcaps.estimators.registry import config_class, method_of
from gcaps.files import exists

_PANELS: dict[type[BaseModel], str] = {
    ClassConfig: "Classes",
    FeatureConfig: "Node features",
    GraphFeatureConfig: "Graph features",
    CapsuleConfig: "Capsules and readout",
    TrainingConfig: "Training",
}


def with_config(command: Callable[..., None], kind: type[Section] = Config) -> Callable[..., None]:
    """Give a command one option for each setting of ``kind``, and ``--config FILE``.

    The command receives the settings as ``config``. An option overrides the file, the file overrides the defaults.
    """
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "config"]
    taken = {p.name for p in own}
    made = [_option(name, field, kind, taken) for name, field in kind.model_fields.items()]
    named = ", and the method's name unless --method gives it" if "method" in taken else ""
    file = inspect.Parameter(
        "config_file",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            Path | None,
            typer.Option(
                "--config",
                metavar="FILE",
                help=f"TOML file with settings{named}; options override it.",
            ),
        ],
    )

    @functools.wraps(command)
    def run(*, config_file: Path | None, **given: Any) -> None:
        values = {} if config_file is None else kind.from_toml(config_file)
        for name, field in kind.model_fields.items():
            text = given.pop(name)
            if text is not None:
                values[name] = _read(field, text)
        if "method" in given:
            given["method"] = kind.method  # which the file may name
        command(**given, config=kind.parse(values))

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    run.__signature__ = inspect.Signature([*parameters, file, *made])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in (*parameters, file, *made)}
    return run


def config_of(arguments: Sequence[str]) -> type[Section]:
    """Return the settings' class of the method that a command line names, by default gcaps.

    Every method has options of its own, so they are known only once the method is.
    """
    return config_class(method_in(arguments))


def method_in(arguments: Sequence[str]) -> str:
    """Return the method that a command line names with ``--method NAME``, else in the file of ``--config FILE``."""
    given = {}
    for option, value in zip(arguments, [*arguments[1:], ""], strict=False):  # no arguments: nothing to pair
        name, equals, own = option.partition("=")
        if name in ("--method", "--config"):
            given[name] = own if equals else value
    if "--method" not in given and "--config" in given and exists(given["--config"]):
        found = read_toml(given["--config"]).get("method", "gcaps")
        if not isinstance(found, str):
            raise ConfigError(f'{given["--config"]}: method is a name, such as "gcaps"')
        return found
    return given.get("--method", "gcaps")


def command_of(run: Callable[..., None], arguments: Sequence[str]) -> Callable[..., None]:
    """Return a verb with the options of the method that its arguments name."""
    kind = config_of(arguments)
    made = with_config(run, kind)
    require_options(made, kind, arguments)
    return made


def require_options(command: Callable[..., None], kind: type[Section], arguments: Sequence[str]) -> None:
    """Raise a ConfigError if the method does not have one of the options."""
    parameters = inspect.signature(command).parameters.values()
    names = [parameter.name.replace("_", "-") for parameter in parameters]
    known = {"--help", "--config", *(f"--{name}" for name in names), *(f"--no-{name}" for name in names)}
    for parameter in parameters:  # an option may have a second name
        for about in getattr(parameter.annotation, "__metadata__", ()):
            known |= {flag for flag in getattr(about, "param_decls", None) or () if flag.startswith("--")}
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag.startswith("--") and len(flag) > 2 and flag not in known:
            near = difflib.get_close_matches(flag, known, 1, cutoff=0.8)
            if near:
                raise ConfigError(f"{kind.method} has no setting {flag}; did you mean {near[0]}?")
            settings = ", ".join("--" + name.replace("_", "-") for name in kind.model_fields)
            raise ConfigError(f"{kind.method} has no setting {flag}; it has {settings}")


def _option(name: str, field: FieldInfo, kind: type[Section], taken: Collection[str] = ()) -> inspect.Parameter:
    """Return the option of a setting; ``n_jobs`` is also ``--jobs`` where the command has no such option itself."""
    panel = next((title for section, title in _PANELS.items() if name in section.model_fields), _title(kind))
    default = "none" if field.default is None else field.default
    if isinstance(default, tuple):
        default = ",".join(map(str, default)) or "none"
    switch = field.annotation is bool
    flag = "--" + name.replace("_", "-")
    flags = [f"{flag}/--no-{flag[2:]}" if switch else flag]
    if name == "n_jobs" and "jobs" not in taken:
        flags.append("--jobs")
    option = typer.Option(
        *flags,
        metavar=None if switch else _metavar(field.annotation),
        help=f"{field.description} (default {('on' if default else 'off') if switch else default})",
        rich_help_panel=panel,
        show_default=False,
    )
    annotation = Annotated[bool | None, option] if switch else Annotated[str | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _title(kind: type[Section]) -> str:
    """Return the name of the panel with the settings that only this method or task has."""
    return method_of(kind.method).title if kind.method else "Settings"


def _metavar(annotation: Any) -> str:
    parts = [p for p in get_args(annotation) if p is not type(None)] if _is_union(annotation) else [annotation]
    names = []
    for part in parts:
        part = get_args(part)[0] if get_origin(part) is Annotated else part
        if get_origin(part) is Literal:
            names.append("|".join(map(str, get_args(part))))
        elif get_origin(part) is tuple:
            entry = get_args(part)[0]
            choices = get_args(entry) if get_origin(entry) is Literal else ()
            names.append(",".join(map(str, choices)) if choices else _metavar(entry) + ",…")
        elif get_origin(part) is dict:
            names.append("CLASS=X,…")
        else:
            names.append({"int": "N", "float": "X", "bool": "on|off"}.get(part.__name__, part.__name__.upper()))
    return "|".join(names)


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _read(field: FieldInfo, text: str | bool) -> Any:
    """Return an option's text as the value that the settings validate."""
    if isinstance(text, bool):
        return text
    kinds = get_args(field.annotation) if _is_union(field.annotation) else (field.annotation,)
    if any(get_origin(kind) is tuple for kind in kinds) and text != "auto":
        return tuple(text.split(","))
    if text.lower() == "none":
        return None
    if any(get_origin(kind) is dict for kind in kinds) and "=" in text:
        return dict(part.rsplit("=", 1) for part in text.split(",") if "=" in part)
    return text
