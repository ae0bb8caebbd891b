"""The tables of the README and the documentation are those of the records."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="this copy has no docs")


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import tables

    return tables


def test_every_table_is_on_a_page_as_the_records_have_it(tables):
    found = []
    for page in tables.pages():
        text = page.read_text(encoding="utf-8")
        found += [mark["name"] for mark in tables.MARKED.finditer(text)]
        assert text.count("<!-- table ") == len(tables.MARKED.findall(text)), page
        assert tables.renewed(text) == (text, []), f"{page}: run python docs/tables.py"
    assert sorted(found) == sorted(tables.TABLES)


def test_a_number_that_was_changed_by_hand_is_found(tables):
    for old in ("| ENZYMES | 99.9 |\n", ""):
        page = f"a\n<!-- table attributes -->\n{old}<!-- end -->\nb\n<!-- end -->\n"
        text, different = tables.renewed(page)
        assert different == ["attributes"]
        new = tables.TABLES["attributes"]()
        assert text == f"a\n<!-- table attributes -->\n{new}\n<!-- end -->\nb\n<!-- end -->\n"


@pytest.mark.parametrize("name", ["accuracy", "molecules"])
def test_pictures_are_those_of_the_results(name, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "pictures"))
    import style

    style.save(importlib.import_module(f"make_{name}").draw, tmp_path / f"{name}.svg")
    kept = ROOT / "docs" / "pictures" / f"{name}.svg"
    same = (tmp_path / f"{name}.svg").read_bytes() == kept.read_bytes()
    assert same, f"{kept}: run python docs/pictures/make_{name}.py"
