"""Help pages of verbs: text that fills the width of the terminal, and one way to name what an option takes."""

from __future__ import annotations

from typing import Any


def tidy(command: Any) -> Any:
    """Return a typer command with a better help page.

    Typer joins the lines of the first paragraph only, so that the others break where lines of the source end. It names
    a type after a switch (``--by-class <bool>``), as if the switch took a value, and calls arguments ``<list[str]>``
    and numbers ``<int range>``.
    """
    if command.help:
        command.help = "\n\n".join(_joined(paragraph) for paragraph in command.help.split("\n\n"))
    make_help_option = command.get_help_option

    def get_help_option(context: Any) -> Any:
        return _named(make_help_option(context))  # typer makes it when it is asked for

    command.get_help_option = get_help_option
    for parameter in command.params:
        _named(parameter)
    for subcommand in getattr(command, "commands", {}).values():
        tidy(subcommand)
    return command


def _named(parameter: Any) -> Any:
    """Return an option with the name of its value: none for a switch, N or X for a number."""
    if getattr(parameter, "param_type_name", None) == "argument":
        parameter.display_type_rich = lambda ctx: None  # its name says what it is
    elif getattr(parameter, "param_type_name", None) == "option" and parameter.metavar is None:
        if parameter.is_flag:
            parameter.metavar = ""
        elif (number := _type_of(parameter)).startswith(("int", "float")):  # also "integer range"
            parameter.metavar = "N" if number.startswith("int") else "X"
    return parameter


def _type_of(parameter: Any) -> str:
    """Return what typer calls the type of an option; older versions have click's types."""
    if hasattr(parameter, "type_descriptor"):
        return str(parameter.display_type(None)).strip("<>")
    return str(parameter.type.name)


def _joined(paragraph: str) -> str:
    """Return a paragraph as one line; if it has indented lines, as a table has, they stay."""
    lines = paragraph.split("\n")
    return paragraph if any(line.startswith(" ") for line in lines) else " ".join(lines)
