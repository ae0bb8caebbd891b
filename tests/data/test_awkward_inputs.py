"""Inputs that are not as they should be: read, or refused in one line that says what to do."""

import importlib.util

import pytest

from tests.data.awkward_inputs import CASES, MARKED, PAGE, rows, seen

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("rdkit") is None, reason="needs RDKit: pip install 'gcaps[chem]'"
)


def test_there_are_at_least_forty_with_different_names():
    assert len({case.title for case in CASES}) == len(CASES) >= 40


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_awkward_input_is_read_or_refused_in_one_line(case, tmp_path, capfd):
    text = seen(case, tmp_path)
    assert case.sees in text
    assert "\n" not in text
    out, err = capfd.readouterr()
    assert (out, err) == ("", ""), "libraries do not write to the terminal"


@pytest.mark.skipif(not PAGE.exists(), reason="this copy has no docs")
def test_the_table_of_the_documentation_is_what_happens():
    found = MARKED.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    page = found[0].removeprefix(found[1]).removesuffix(found[2]).strip()
    assert page == rows().strip(), "run python tests/data/awkward_inputs.py"
