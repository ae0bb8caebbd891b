"""The page docs/guides/capsules.md quotes what its commands print."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "capsules.md"
QUOTED = re.compile(r"```\n\$ python docs/pictures/make_capsules\.py --print (\w+)\n(.*?)\n```", re.DOTALL)

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="this copy has no docs")


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(PAGE.parents[1] / "pictures"))
    import capsule_tables

    return capsule_tables.TABLES


def test_every_table_is_quoted_as_it_is_printed(tables):
    quoted = dict(QUOTED.findall(PAGE.read_text(encoding="utf-8")))
    assert set(quoted) == set(tables)
    for name, text in quoted.items():
        if name != "errors":
            assert text == "\n".join(line.rstrip() for line in tables[name]().splitlines()), name


def test_quoted_decoding_errors_are_of_the_right_size(tables):
    def numbers(text):
        return [max(float(n), 1e-16) for n in re.findall(r"\de[+-]\d\d", text)]

    quoted = dict(QUOTED.findall(PAGE.read_text(encoding="utf-8")))["errors"]
    printed = tables["errors"]()
    assert len(numbers(quoted)) == len(numbers(printed)) > 0
    for one, other in zip(numbers(quoted), numbers(printed), strict=True):
        assert 1 / 30 < one / other < 30


def test_every_picture_exists():
    for name in re.findall(r"\]\((\.\./pictures/[^)]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / name).is_file()
