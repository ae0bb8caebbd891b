"""What the pages say exists: files, commands and options, modules and names, and every setting."""

import ast
import importlib
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"(?<!\\)\]\(([^)#:]+)(?:#[^)]*)?\)")

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="this copy has no docs")


def name(page):
    return str(page.relative_to(ROOT))


def commands(page):
    """The ``gcaps`` commands on a page, in code blocks and in the text."""
    text = page.read_text(encoding="utf-8")
    lines = [line for _, block in FENCE.findall(text) for line in block.splitlines()]
    lines += re.findall(r"`(gcaps [^`]+)`", FENCE.sub("", text))
    lines += re.findall(r"-m (gcaps [^`\n]+)", text)
    return [line.split("  #")[0] for line in lines if re.match(r"gcaps [a-z]+\b", line)]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_lead_to_files(page):
    for target in LINK.findall(CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))):
        generated = target.removeprefix("../").startswith("reference/")
        assert generated or (page.parent / target).exists(), f"{name(page)}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_and_their_options_exist(page):
    if page.name == "CHANGELOG.md":
        pytest.skip("names what was renamed")
    for line in commands(page):
        words = ["gcaps" if word == "NAME" else word for word in shlex.split(line) if word != "…"][1:]
        assert options_of(words) >= {word.split("=")[0] for word in words if word.startswith("--")}, line


def options_of(words):
    from gcaps.cli.app import VERBS, _typer_command

    assert words[0] in VERBS, words
    command = _typer_command(words[0], [w for w in words[1:] if w.rstrip(",…")])
    if hasattr(command, "commands"):
        names = words[1].rstrip(",").split("|") if len(words) > 1 else []
        assert all(n in command.commands for n in names), words
        return {flag for n in names for parameter in command.commands[n].params for flag in flags(parameter)} | {
            "--help"
        }
    return {flag for parameter in command.params for flag in flags(parameter)} | {"--help"}


def flags(parameter):
    return [*parameter.opts, *parameter.secondary_opts]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_parse_and_import_what_exists(page):
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if language != "python":
            continue
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "gcaps":
                module = importlib.import_module(node.module)
                assert all(hasattr(module, found.name) for found in node.names), ast.unparse(node)
            if isinstance(node, ast.Attribute) and re.fullmatch(r"gcaps(\.\w+)+", ast.unparse(node)):
                assert resolves(ast.unparse(node)), f"{name(page)}: {ast.unparse(node)}"


def resolves(path):
    value = importlib.import_module("gcaps")
    for part in path.split(".")[1:]:
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


@pytest.fixture
def hooks(monkeypatch):
    pytest.importorskip("griffe")
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import hooks

    return hooks


def test_the_reference_has_every_setting_and_every_rule_for_auto(hooks):
    from gcaps.config import CONFIGS
    from gcaps.estimators.auto import RULES

    page = hooks.settings_page()
    rules, *methods = page.split("\n## `")
    assert len(methods) == len(CONFIGS)
    for (method, config), part in zip(CONFIGS.items(), methods, strict=True):
        assert part.startswith(f"{method}`")
        assert re.findall(r"^\| `(\w+)` \|", part.split("\n## ")[0], re.MULTILINE) == list(config.model_fields)
    listed = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", rules, re.MULTILINE)
    assert [setting for setting, _, _ in listed] == list(RULES)


def test_the_reference_has_every_estimator_check(hooks):
    from gcaps.testing import CHECKS, NOT_APPLICABLE

    runs, others = hooks.checks_page().split("## Checks of scikit-learn that do not apply")
    assert re.findall(r"^\| `(\w+)` \| (?:adapted|unchanged) \| .+ \|$", runs, re.MULTILINE) == sorted(CHECKS)
    assert re.findall(r"^\| `(\w+)` \| .+ \|$", others, re.MULTILINE) == sorted(NOT_APPLICABLE)


def test_the_reference_has_every_public_module_and_name(hooks):
    for module in hooks.MODULES.values():
        page = hooks.module_page(module)
        assert page.startswith(f"# {module}\n")
        assert len(re.findall(rf"^::: {re.escape(module)}\.\w+$", page, re.MULTILINE)) > 0


def test_the_tree_names_every_module(hooks):
    tree = hooks.tree()
    for file in (ROOT / "src" / "gcaps").rglob("*.py"):
        if not file.name.startswith("__"):
            assert re.search(rf"^\| (&emsp;)*{re.escape(file.name)} \| \S", tree, re.MULTILINE), file


def test_the_architecture_names_functions_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    found = re.findall(r"`([a-z_]+(?:/[a-z_]+)+)\.([A-Za-z_]+)", text)
    assert len(found) > 15
    for module, attribute in found:
        if attribute not in ("py", "toml"):
            assert hasattr(importlib.import_module(f"gcaps.{module.replace('/', '.')}"), attribute), (
                f"{module}.{attribute}"
            )
