"""Hooks of the documentation site: pages that are generated from the code, and docstrings as Markdown.

``reference/settings.md`` is made from the settings of every method (:data:`gcaps.config.CONFIGS`) and the rules for
``auto``, ``reference/estimator-checks.md`` from the checks of ``gcaps.testing``; every other page of ``reference/``
lists the public names of a module.
"""

from __future__ import annotations

import ast
import html
import importlib
import inspect
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import griffe

MODULES = {
    "gcaps": "gcaps",
    **{
        name: f"gcaps.{name}"
        for name in (
            *("estimators", "data", "features", "nn", "models", "kernels"),
            *("evaluation", "explain", "exporting", "report", "serve", "pyg", "tasks", "theory", "testing"),
        )
    },
}
"""Page of ``reference/`` → module."""
PACKAGE = Path(__file__).parents[1] / "src" / "gcaps"
FOLDERS = (
    "config",
    *("data", "features", "batching", "nn", "models", "kernels", "training"),
    *("estimators", "tasks", "exporting", "tuning", "evaluation", "explain", "report", "serve"),
    *("theory", "testing", "compile", "cli"),
)
"""Folders of the package in the order in which data flow."""
MAIN = ("load", "GraphSet", "evaluate", "compare", "load_model", "GraphCapsuleConv", "MeanCovariance")
"""Names that come first on their page, before the estimators."""


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    pages = {"settings": settings_page(), "estimator-checks": checks_page()}
    pages |= {name: module_page(module) for name, module in MODULES.items()}
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Insert the files of the package for ``<!-- tree -->``; keep numbers and names of data sets in tables together."""
    if "<!-- tree -->" in markdown:
        markdown = markdown.replace("<!-- tree -->", tree())
    return re.sub(r"^\|.*$", lambda match: _unbroken(match[0]), markdown, flags=re.MULTILINE)


def _unbroken(row: str) -> str:
    row = re.sub(r"(?<=[\d–]) ([±/]) (?=[\d–])", "\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", row)
    return re.sub(r"\| ((?:IMDB|REDDIT)-[A-Z0-9-]+) (?=\|)", r'| <span class="unbroken">\1</span> ', row)


def tree() -> str:
    """Return a table of the folders and modules of ``src/gcaps``."""
    lines = ["| file | content |", "|---|---|"]
    for name in sorted((file.relative_to(PACKAGE) for file in PACKAGE.rglob("*.py")), key=_order):
        if str(name) in ("__init__.py", "__main__.py"):
            continue
        indent = "&emsp;" * (len(name.parts) - 1)
        shown = f"**{name.parent}/**" if name.name == "__init__.py" else f"{indent}{name.name}"
        lines.append(f"| {shown} | {_cell(_summary(PACKAGE / name))} |")
    return "\n".join(lines)


def _order(name: Path) -> tuple[Any, ...]:
    """Folders in the order in which data flow; in each, ``__init__`` first, then modules, then folders."""
    place = FOLDERS.index(name.parts[0]) if len(name.parts) > 1 else -1
    inner = [(-1 if part == "__init__.py" else int(not part.endswith(".py")), part) for part in name.parts]
    return place, inner


def _summary(file: Path) -> str:
    """Return the first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    sentence = re.split(r"(?<!Eq)\.\s+(?=[A-Z])", text.partition("\n\n")[0])[0]
    return ROLE.sub(r"`\g<name>`", sentence).rstrip(".")


def module_page(module: str) -> str:
    """Return a page with the docstring of a module and the documentation of its public names."""
    found = importlib.import_module(module)
    names = [name for name in found.__all__ if not name.startswith("__") and not inspect.ismodule(getattr(found, name))]
    options = "{members: false, show_root_heading: false, show_root_toc_entry: false}"
    page = f"# {module}\n\n::: {module}\n    options: {options}\n"
    for name in sorted(names, key=lambda name: _prominence(found, name)):
        page += f"\n::: {module}.{name}\n{_options(getattr(found, name), name)}"
    return page


def _prominence(module: Any, name: str) -> tuple[Any, ...]:
    """Sort key: the main names of a module, other classes, functions, constants."""
    from gcaps.estimators.registry import METHODS

    main = [*MAIN, *(method.estimator for method in METHODS.values()), "KernelSVC"]
    value = getattr(module, name)
    kind = 0 if inspect.isclass(value) else 1 if callable(value) else 2
    return (-1, main.index(name), name) if name in main else (kind, 0, name.lower())


def _options(value: Any, name: str) -> str:
    """Options of mkdocstrings for an estimator: what users call, without what the engine calls on every estimator."""
    from gcaps.estimators.base import GraphClassifier

    if not (inspect.isclass(value) and issubclass(value, GraphClassifier)) or value is GraphClassifier:
        return ""
    if name == "GraphCapsuleClassifier":
        shown = "[fit, predict, predict_proba, transform, score, save]"
        return f"    options: {{inherited_members: {shown}, members: {shown}}}\n"
    internal = [*vars(GraphClassifier), "members", "kernels", "grams", "resolved_kernels", "release"]
    own = [member for member in vars(value) if not member.startswith("_") and member not in internal]
    members = [member for member in own if callable(getattr(value, member, None))]
    return f"    options: {{members: [{', '.join(members)}]}}\n" if members else "    options: {members: false}\n"


def checks_page() -> str:
    """Return the tables of scikit-learn's estimator checks: those that run on graphs, and those that do not apply."""
    from gcaps.testing import CHECKS, NOT_APPLICABLE

    lines = [
        "# Estimator checks\n",
        "[`gcaps.testing.check_graph_estimator`][gcaps.testing.check_graph_estimator] runs scikit-learn's estimator "
        "checks on estimators of graphs: every method as a classifier and as a regressor, every kernel and `GraphFGSD` "
        "pass them in the tests. A check is *unchanged* where it needs no X, *adapted* where scikit-learn's takes a "
        "2-D X.\n",
        "## Checks that run\n",
        "| check | | what is checked |",
        "|---|---|---|",
    ]
    for name, check in sorted(CHECKS.items()):
        lines.append(f"| `{name}` | {'adapted' if check.adapted else 'unchanged'} | {_cell(check.about)} |")
    lines += [
        "\nA graph of weight 2 is the same as two graphs (`check_sample_weight_repetition`) in support vector "
        "classification with `rw`, `sp`, `gk`, `wl`, `wloa` and `wwl` once kernel and C are fixed. It is not where "
        "graphs are drawn in batches or by a bootstrap, where a basis or a unit of distance is learned from the graphs "
        "(`dgk`, `mlg`, `retgk`, `capsule-svm`), or where targets are standardised (regression). A weight of 0 is the "
        "same as no graph everywhere.\n",
        "## Checks of scikit-learn that do not apply\n",
        "| check | reason |",
        "|---|---|",
        *(f"| `{name}` | {reason} |" for name, reason in sorted(NOT_APPLICABLE.items())),
    ]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """Return the tables of all settings and the rules for ``auto``."""
    return "\n".join(_settings_lines())


def _settings_lines() -> Iterator[str]:
    from gcaps.config import CONFIGS
    from gcaps.config.generation import GenerationConfig
    from gcaps.config.sequences import SequenceConfig
    from gcaps.config.spaces import SPACES
    from gcaps.config.tasks import LinkConfig, NodeConfig
    from gcaps.estimators import auto
    from gcaps.estimators.registry import METHODS, estimator_class
    from gcaps.evaluation.experiments import Entry, Experiment

    yield "# Settings\n"
    yield (
        "Every setting of every method with its type, default and meaning. The names are those of the estimators' "
        "arguments, of TOML files and of command-line options (`batch_size` is `--batch-size`; a switch such as `root` "
        "is `--root` or `--no-root`). A setting that a method does not have is an error.\n"
    )
    yield "This page is generated from `gcaps.config` and `gcaps.estimators.auto`.\n"
    yield "## Rules for `auto`\n"
    yield (
        "A setting that is `auto` is resolved once, from the training graphs alone. `gcaps train` prints the value and "
        "the reason, estimators keep them in `resolved_` and `resolution_`, and reports show them.\n"
    )
    yield f"- A training set is **small** below {auto.SMALL_TRAINING_SET} graphs."
    yield (
        "- Sizes are **dispersed** if the training set is not small and the 90th percentile of the numbers of nodes "
        f"is more than {auto.DISPERSED_SIZES} times the 10th.\n"
    )
    yield "| setting | values | why |"
    yield "|---|---|---|"
    for name, rule in auto.RULES.items():
        yield f"| `{name}` | {_cell(_values_of(name))} | {_cell(inspect.getdoc(rule) or '')} |"
    yield ""
    for method, config in CONFIGS.items():
        title = METHODS[method].title
        yield f"## `{method}`: {title} {{#{method}}}\n"
        name = estimator_class(method).__name__
        yield f"[`{name}`][gcaps.estimators.{name}]. {_paragraphs(inspect.getdoc(config) or '')}\n"
        yield from _fields(config)
        if method in SPACES:
            searched = "; ".join(f"`{setting}`: {values}" for setting, values in SPACES[method].items())
            yield f"\n[`gcaps tune`](../guides/tune.md) searches {searched}.\n"
    yield "## Tasks {#tasks}\n"
    kinds = {"nodes": NodeConfig, "links": LinkConfig, "sequences": SequenceConfig, "generate": GenerationConfig}
    for verb, kind in kinds.items():
        yield f"### `gcaps tasks {verb}`\n"
        yield f"{_paragraphs(inspect.getdoc(kind) or '')}\n"
        yield from _fields(kind)
    yield "## Experiment files {#experiments}\n"
    yield "The keys of a TOML file for `gcaps compare --experiment FILE`.\n"
    yield from _fields(Experiment)
    yield "Keys of an `[[entries]]` table, a row with settings, data sets or folds of its own:\n"
    yield from _fields(Entry)


def _fields(config: Any) -> Iterator[str]:
    """Yield the table of a settings class."""
    yield "| setting | type | default | meaning |"
    yield "|---|---|---|---|"
    for name, info in config.model_fields.items():
        meaning = _cell(info.description or "")
        yield f"| `{info.alias or name}` | {_cell(_type(info))} | {_default(info.default)} | {meaning} |"
    yield ""


def _values_of(setting: str) -> str:
    """Return what a setting's description says after ``auto:``."""
    from gcaps.config import CONFIGS

    texts = [
        config.model_fields[setting].description or "" for config in CONFIGS.values() if setting in config.model_fields
    ]
    found = next((text for text in texts if "auto:" in text), "")
    return found.partition("auto:")[2].strip()


PLAIN = {int: "integer", float: "number", bool: "`true` or `false`", str: "text", NoneType: "none", dict: "table"}


def _type(info: Any) -> str:
    """Return the type of a setting as a reader would write it, such as ``integer 1…32 or `auto```."""
    return _annotation(info.annotation, info.metadata)


def _annotation(annotation: Any, bounds: Iterable[Any] = ()) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = [entry for field in arguments[1:] for entry in getattr(field, "metadata", [field])]
        return _annotation(arguments[0], inner)
    if origin is Literal:
        return _either([f"`{value}`" for value in arguments])
    if origin in (Union, UnionType):
        return _either([_annotation(argument, bounds) for argument in arguments])
    if origin is tuple:
        return "list of " + re.sub(r"^(integer|number|table)", r"\1s", _annotation(arguments[0]))
    if annotation in (int, float):
        return f"{PLAIN[annotation]} {_interval(bounds)}".strip()
    return PLAIN.get(origin or annotation, "table")  # a settings class


def _either(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + f" or {parts[-1]}" if len(parts) > 1 else parts[0]


def _interval(bounds: Iterable[Any]) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    found = {name: getattr(entry, name) for entry in bounds for name in signs if hasattr(entry, name)}
    if {"ge", "le"} <= set(found):
        return f"{found['ge']}…{found['le']}"
    return ", ".join(f"{signs[name]} {value}" for name, value in found.items())


def _default(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple | list | dict):
        return ", ".join(f"`{entry}`" for entry in value) or "`none`"
    return f"`{value:g}`" if isinstance(value, int | float) else f"`{value}`" if value else "empty"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", _markdown(text)).replace("|", "\\|")


def _paragraphs(text: str) -> str:
    return "\n\n".join(re.sub(r"\s+", " ", part) for part in _markdown(text).split("\n\n"))


class Docstrings(griffe.Extension):
    """Griffe extension: docstrings are reStructuredText in places; make Markdown of roles, formulas and tables."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Rewrite the docstrings of a package once it is loaded."""
        self._rewrite(pkg)

    def _rewrite(self, found: Any) -> None:
        if found.is_alias:
            return
        if found.docstring is not None:
            found.docstring.value = _markdown(found.docstring.value, found)
        for member in found.members.values():
            self._rewrite(member)


ROLE = re.compile(r":(?P<role>[a-z]+):`(?P<short>~?)(?P<name>[^`]+)`")
FORMULA = re.compile(r"^\.\. math::\n((?:[ \t]+\S.*\n?|\n)+)", re.MULTILINE)
TABLE = re.compile(r"^=+  =+\n(.*?)^=+  =+$", re.MULTILINE | re.DOTALL)


def _markdown(text: str, found: Any = None) -> str:
    """Return a docstring as Markdown; ``found`` is the object it belongs to, by which names are looked up."""
    text = FORMULA.sub(lambda match: _formula(match[1]) + "\n\n", text)
    text = TABLE.sub(_table, text)
    text = re.sub(r"(`[^`]*`)|\]\[", lambda match: match[1] or r"]\[", text)  # [graph][class] is not a link
    text = ROLE.sub(lambda match: _reference(match, found), text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = re.sub(r"docs/([\w/-]+)\.md", r'<a href="../\1.html">\1</a>', text)
    return re.sub(r"::$", ":", text, flags=re.MULTILINE)


def _reference(match: re.Match[str], found: Any) -> str:
    name = match["name"]
    if match["role"] == "math":
        return _formula(name, inline=True)
    shown = name.rpartition(".")[2] if match["short"] else name
    target = name
    if found is not None and not name.startswith("gcaps."):
        try:
            target = found.resolve(name)
        except griffe.NameResolutionError:
            target = f"{found.path}.{name}"
    return f'<autoref optional identifier="{target}"><code>{shown}</code></autoref>'


def _table(match: re.Match[str]) -> str:
    rows = [re.split(r"\s{2,}", row.strip(), maxsplit=1) for row in match[1].strip().splitlines()]
    rows = [[_cell(entry) for entry in row] for row in rows]
    return "\n".join(["| | |", "|---|---|", *(f"| {' | '.join(row)} |" for row in rows)])


def _formula(source: str, *, inline: bool = False) -> str:
    """Return a formula as SVG, drawn by matplotlib: no script and no network is needed to read it."""
    import matplotlib as mpl
    from matplotlib import mathtext
    from matplotlib.font_manager import FontProperties

    tex = re.sub(r"\s+", " ", source).strip()
    for old, new in ((r"\tfrac12", r"\frac{1}{2}"), (r"\Big", ""), (r"\big", ""), (r"\dots", r"\ldots")):
        tex = tex.replace(old, new)
    file = io.StringIO()
    with mpl.rc_context({"mathtext.fontset": "stix", "svg.hashsalt": "gcaps"}):
        mathtext.math_to_image(f"${tex}$", file, prop=FontProperties(size=13), format="svg")
    svg = file.getvalue()
    svg = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL
    )
    svg = re.sub(r"\s*\n\s*", " ", svg).replace("fill: #ffffff", "fill: none")
    label = html.escape(tex, quote=True)
    svg = svg.replace("<svg", f'<svg class="formula" role="img" aria-label="{label}"', 1)
    return svg if inline else f"<p>{svg}</p>"
