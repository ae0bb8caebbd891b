"""Search spaces and files of them."""

import pytest

from gcaps.config import CONFIGS
from gcaps.config.spaces import SPACES, Choice, Range, combinations, search_space
from gcaps.errors import ConfigError


@pytest.mark.parametrize("method", SPACES)
def test_a_space_contains_the_default_and_only_valid_settings(method):
    default = CONFIGS[method].parse({}).to_dict()
    for name, dimension in search_space(method, SPACES[method]).items():  # which parses all values
        assert dimension.value_of(dimension.label_of(default[name])) == default[name], name
    assert combinations(SPACES[method]) > 1


def test_methods_that_choose_for_themselves_have_nothing_to_tune():
    with pytest.raises(ConfigError, match="nothing to tune: wwl chooses its settings itself"):
        search_space("wwl")
    with pytest.raises(ConfigError, match="ensemble weighs other methods"):
        search_space("ensemble")


def test_a_file_replaces_the_space_of_a_method(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(
        '[gcaps]\nhidden = {low = 8, high = 64, log = true}\nlayers = ["auto", 2]\nrank = [16, "none"]\nfc = 32\n'
    )
    assert search_space("gcaps", path) == {
        "hidden": Range(8, 64, log=True),
        "layers": Choice(["auto", 2]),
        "rank": Choice([16, None]),
        "fc": Choice([32]),
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[gin]\nhidden = [16]", r"has no table \[gcaps\]"),
        ("[nonsense]\nhidden = [16]", "no method 'nonsense'"),
        ("[gcaps]\nwidth = [16]", "gcaps.width: there is no such setting"),
        ("[gcaps]\nhidden = [0]", "hidden"),
        ("[gcaps]\nhidden = {low = 64, high = 8}", "low is less than high"),
        ("[gcaps]\nlr = {low = 0, high = 1, log = true}", "above 0"),
        ("[gcaps]\nlr = {low = 0.1}", "high"),
        ("[gcaps]\nlr = {low = -1.0, high = 1.0}", "lr"),
        ("[gcaps]\nhidden = []", "0 values"),
        ("gcaps = 3", "is a table"),
    ],
)
def test_a_space_that_is_none_names_file_and_setting(tmp_path, text, problem):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem) as raised:
        search_space("gcaps", path)
    assert "space.toml" in str(raised.value)


def test_true_and_one_are_different_choices():
    choice = Choice([True, 1, "1"])
    assert [choice.value_of(choice.label_of(value)) for value in (True, 1, "1")] == [True, 1, "1"]
    with pytest.raises(ValueError, match="none of"):
        choice.label_of(False)
