import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcaps.errors import ConfigError, DataError
from gcaps.evaluation import Fold, read_splits, stratified_folds
from gcaps.evaluation.experiments import Evaluation, named_methods, rows_of
from gcaps.evaluation.group_splits import TEST, TRAIN, VALIDATION, balanced_parts, group_folds, largest_first_parts
from gcaps.evaluation.outcome import fold_digest
from gcaps.evaluation.plan import Limits
from gcaps.evaluation.planning import make_plan
from gcaps.evaluation.splits import Split, folds_of, groups_of, split_notes, write_splits
from gcaps.testing import hostile_graphs


def test_stratified_folds_test_every_graph_once_and_never_train_on_it():
    y = np.array([0] * 37 + [1] * 63)
    folds = stratified_folds(y, 10, seed=0)
    assert sorted(np.concatenate([f.test for f in folds])) == list(range(100))
    for fold in folds:
        assert not set(fold.train) & set(fold.test)
        assert len(fold.train) + len(fold.test) == 100
        assert abs((y[fold.test] == 0).sum() - 3.7) <= 1
    assert not np.array_equal(folds[0].test, stratified_folds(y, 10, seed=1)[0].test)


def test_folds_depend_on_which_graphs_share_a_class_and_not_on_what_classes_are_called():
    y = np.array([0] * 37 + [1] * 63)
    named = np.where(y == 0, "active", "inactive")
    for a, b in zip(stratified_folds(y, 10, seed=3), stratified_folds(named, 10, seed=3), strict=True):
        np.testing.assert_array_equal(a.train, b.train)
        np.testing.assert_array_equal(a.test, b.test)


@pytest.mark.parametrize("small", [1, 2, 4])
def test_a_class_with_fewer_graphs_than_folds_is_spread_over_some_of_them(small):
    y = np.array(["a"] * 20 + ["b"] * small)
    folds = stratified_folds(y, 10, 0)
    assert sorted(np.concatenate([f.test for f in folds])) == list(range(len(y)))
    assert sum((y[f.test] == "b").any() for f in folds) == small
    assert all((y[f.test] == "a").sum() == 2 for f in folds)


def test_more_folds_than_any_class_has_graphs_are_random_ones():
    folds = stratified_folds(np.array([0, 0, 1, 1, 2, 2]), 5, 0)
    assert sorted(np.concatenate([f.test for f in folds])) == list(range(6))


def test_splits_file(tmp_path):
    file = tmp_path / "s.json"
    file.write_text(json.dumps([{"train": [0, 3], "validation": [2], "test": [1]}, {"train": [1], "test": [0]}]))
    first, second = read_splits(file, 4)
    assert first.train.tolist() == [0, 2, 3]
    assert first.validation.tolist() == [2]
    assert first.test.tolist() == [1]
    assert second.validation is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "JSON"),
        ("{}", "list of folds"),
        ("[]", "list of folds"),
        ('[{"train": [0], "test": [9]}]', "outside 0..3"),
        ('[{"train": [0], "test": [-1]}]', "outside 0..3"),
        ('[{"train": [0, 1], "test": [1]}]', "graph 1 is listed twice"),
        ('[{"train": [0], "test": ["1"]}]', "list of graph numbers"),
        ('[{"train": [0], "test": [true]}]', "list of graph numbers"),
        ('[{"train": [0]}]', "must not be empty"),
    ],
)
def test_wrong_splits_are_named(tmp_path, content, words):
    file = tmp_path / "s.json"
    file.write_text(content)
    with pytest.raises(DataError, match=words) as caught:
        read_splits(file, 4)
    assert str(file) in str(caught.value)


def test_written_splits_are_read_back(tmp_path):
    folds = [Fold(np.array([0, 2, 3]), np.array([1]), np.array([2])), Fold(np.array([1]), np.array([0]))]
    (tmp_path / "s.json").write_text(json.dumps(write_splits(folds)))
    for fold, again in zip(folds, read_splits(tmp_path / "s.json", 4), strict=True):
        assert fold_digest(again) == fold_digest(fold)


def test_the_fair_comparisons_folds_can_be_read(data_folder):
    folds = read_splits(data_folder / "splits" / "ENZYMES.json", 600)
    assert len(folds) == 10
    assert sorted(np.concatenate([f.test for f in folds])) == list(range(600))


def with_columns(n, y=None, **columns):
    """A set of n graphs with targets and columns."""
    graphs = hostile_graphs(n, seed=0)
    values = np.random.default_rng(0).normal(size=n) if y is None else y
    return replace(graphs, y=values, columns={name: np.asarray(values) for name, values in columns.items()})


def check(folds, graphs):
    """No graph is trained on and tested, validation graphs are training graphs, and all have a target."""
    for fold in folds:
        assert len(fold.train)
        assert len(fold.test)
        assert not np.intersect1d(fold.train, fold.test).size
        assert len(np.unique(fold.train)) == len(fold.train)
        assert len(np.unique(fold.test)) == len(fold.test)
        assert fold.validation is None or np.isin(fold.validation, fold.train).all()
        assert np.isfinite(graphs.y[np.concatenate([fold.train, fold.test])]).all()


SIZES = st.integers(20, 60)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 100))
def test_group_folds_keep_groups_whole_and_test_every_graph_once(seed, folds, many):
    groups = np.unique(np.random.default_rng(seed).integers(0, many + 1, 60), return_inverse=True)[1]
    if groups.max() + 1 < folds:
        with pytest.raises(DataError, match="too few for"):
            group_folds(groups, folds, seed)
        return
    place = group_folds(groups, folds, seed)
    assert set(place) == set(range(folds))
    for group in np.unique(groups):
        assert len(set(place[groups == group])) == 1
    sizes = np.bincount(place)
    assert max(sizes) - min(sizes) <= np.bincount(groups).max()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), SIZES)
def test_divisions_of_groups_keep_them_whole(seed, n):
    groups = np.unique(np.random.default_rng(seed).integers(0, n, n), return_inverse=True)[1]
    for parts in (largest_first_parts(groups), balanced_parts(groups, seed)):
        for group in np.unique(groups):
            assert len(set(parts[groups == group])) == 1
        assert (parts == TRAIN).sum() <= 0.8 * n
        assert (parts == VALIDATION).sum() <= 0.2 * n


def chemprop_parts(scaffolds, rng):
    """The balanced scaffold split as one would write it down, one group after the other."""
    members = {}
    for i, scaffold in enumerate(scaffolds):
        members.setdefault(scaffold, []).append(i)
    groups, count = list(members.values()), len(scaffolds)
    groups = [groups[i] for i in rng.permutation(len(groups))]
    large = [group for group in groups if len(group) > 0.05 * count]
    small = [group for group in groups if len(group) <= 0.05 * count]
    sides = {TRAIN: [], VALIDATION: [], TEST: []}
    for group in large + small:
        if len(sides[TRAIN]) + len(group) <= 0.8 * count:
            sides[TRAIN] += group
        elif len(sides[VALIDATION]) + len(group) <= 0.1 * count:
            sides[VALIDATION] += group
        else:
            sides[TEST] += group
    parts = np.zeros(count, dtype=int)
    for side, positions in sides.items():
        parts[positions] = side
    return parts


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(10, 200), st.integers(2, 60))
def test_balanced_parts_are_those_of_chemprops_split(seed, n, many):
    scaffolds = [f"c{k}" for k in (np.random.default_rng(seed).random(n) ** 3 * many).astype(int)]
    expected = chemprop_parts(scaffolds, np.random.default_rng(seed))
    np.testing.assert_array_equal(balanced_parts(np.array(scaffolds), seed), expected)


def test_large_groups_of_a_balanced_division_are_trained_on():
    groups = np.array([0] * 30 + [1] * 6 + list(range(2, 66)))
    for seed in range(5):
        assert (balanced_parts(groups, seed)[:36] == TRAIN).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), SIZES, st.integers(1, 4), st.sampled_from(["number", "date", "year"]))
def test_time_folds_train_on_earlier_graphs_only(seed, n, folds, kind):
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 400, n)
    column = {
        "number": days / 7,
        "date": (np.datetime64("2023-01-01") + days).astype(str),
        "year": (1980 + days % 40).astype(str),
    }[kind]
    order = {"number": days, "date": days, "year": days % 40}[kind]
    y = rng.normal(size=n)
    y[rng.integers(0, n, 3)] = np.nan
    graphs = with_columns(n, y, date=column)
    parts = folds_of(graphs, folds, "time:date", seed, "regression")
    check(parts, graphs)
    assert len(parts) == folds
    for fold in parts:
        assert order[fold.train].max() < order[fold.test].min()
        if fold.validation is not None:
            trained = np.setdiff1d(fold.train, fold.validation)
            assert order[trained].max() < order[fold.validation].min()
    for a, b in pairwise(parts):
        assert np.isin(a.train, b.train).all()
        assert np.isin(a.test, b.train).all()
    assert order[parts[-1].test].max() == order[np.isfinite(y)].max()


def test_time_folds_name_what_is_no_time():
    y = np.arange(20.0) + 0.5
    with pytest.raises(DataError, match="'soon' is neither a number nor an ISO 8601 date"):
        folds_of(with_columns(20, y, t=["2024-01-01"] * 19 + ["soon"]), 2, "time:t", 0, "regression")
    with pytest.raises(DataError, match="2 different times are too few for 5 folds"):
        folds_of(with_columns(20, y, t=[1.0] * 10 + [2.0] * 10), 5, "time:t", 0, "regression")
    with pytest.raises(DataError, match="1 graphs have no value"):
        folds_of(with_columns(20, y, t=[np.nan, *range(19)]), 2, "time:t", 0, "regression")


def test_a_column_says_train_validation_or_test():
    column = ["Train"] * 10 + ["VALID"] * 3 + ["test"] * 4 + ["dev"] * 2 + ["Train"]
    y = np.arange(20.0) + 0.5
    y[0] = np.nan
    graphs = with_columns(20, y, Model=column)
    (fold,) = folds_of(graphs, 10, "column:Model", 3, "regression")
    check([fold], graphs)
    assert fold.test.tolist() == [13, 14, 15, 16]
    assert fold.validation.tolist() == [10, 11, 12, 17, 18]
    assert fold.train.tolist() == [*range(1, 13), 17, 18, 19]
    with pytest.raises(DataError, match="holds 'extern'; its values are train"):
        folds_of(with_columns(3, y[1:4], m=["train", "test", "extern"]), 1, "column:m", 0, "regression")
    with pytest.raises(DataError, match="names no test graphs"):
        folds_of(with_columns(3, y[1:4], m=["train", "valid", "train"]), 1, "column:m", 0, "regression")
    with pytest.raises(DataError, match="needs a column 'Model' of the table; it has date"):
        folds_of(with_columns(3, y[1:4], date=[1, 2, 3]), 1, "column:Model", 0, "regression")


SMILES = ["c1ccccc1" + "C" * i for i in range(8)] + ["C1CCCCC1" + "O" * (i % 2) + "C" * i for i in range(6)]
SMILES += ["C" * (i + 1) for i in range(5)] + ["c1ccncc1", "c1ccsc1", "C1CC1", "c1ccc2ccccc2c1"]


@pytest.mark.parametrize("split", ["scaffold", "scaffold-balanced"])
@pytest.mark.parametrize("folds", [1, 3])
def test_scaffold_folds_keep_scaffolds_whole(folds, split):
    pytest.importorskip("rdkit")
    from gcaps.data.molecules.scaffolds import scaffolds_of

    graphs = with_columns(len(SMILES), smiles=SMILES)
    names = scaffolds_of(graphs)
    assert names[0] == names[7] == "c1ccccc1"
    assert len(set(names[14:19])) == 1, "acyclic molecules share the empty scaffold"
    parts = folds_of(graphs, folds, split, 0, "regression")
    check(parts, graphs)
    assert len(parts) == folds
    for fold in parts:
        assert not np.intersect1d(names[fold.train], names[fold.test]).size
    if folds == 1:
        held = parts[0].validation
        assert held is None or not np.intersect1d(names[np.setdiff1d(parts[0].train, held)], names[held]).size
        assert "c1ccccc1" not in names[parts[0].test], "the largest are trained on"


def test_balanced_scaffolds_are_divided_by_the_seed_and_largest_first_ones_are_not():
    pytest.importorskip("rdkit")
    graphs = with_columns(len(SMILES), smiles=SMILES)

    def tests(split, folds):
        return {tuple(folds_of(graphs, folds, split, seed, "regression")[0].test) for seed in range(5)}

    assert len(tests("scaffold", 1)) == 1
    assert len(tests("scaffold-balanced", 1)) > 1
    assert tests("scaffold-balanced", 3) == tests("scaffold", 3)


def test_groups_are_scaffolds_or_a_columns_values():
    pytest.importorskip("rdkit")
    graphs = with_columns(len(SMILES), smiles=SMILES, batch=np.arange(len(SMILES)) // 4)
    assert groups_of(graphs, "random") is None
    assert groups_of(graphs, "group:batch").tolist() == (np.arange(len(SMILES)) // 4).tolist()
    for split in ("scaffold", "scaffold-balanced"):
        assert len(set(groups_of(graphs, split)[:8])) == 1
        assert groups_of(graphs, split).max() + 1 == 7


def test_scaffolds_need_smiles():
    with pytest.raises(DataError, match="scaffolds need SMILES"):
        folds_of(with_columns(12), 2, "scaffold", 0, "regression")


@pytest.mark.parametrize("split", ["random", "group:batch", "time:batch"])
def test_graphs_without_a_target_are_in_no_fold(split):
    y = np.random.default_rng(1).normal(size=(40, 2))
    y[::4] = np.nan
    y[1, 0] = np.nan
    graphs = with_columns(40, batch=np.arange(40) // 4)
    graphs = replace(graphs, y=y)
    for folds in (1, 3):
        for fold in folds_of(graphs, folds, split, 0, "regression"):
            assert not np.isin(np.arange(0, 40, 4), np.concatenate([fold.train, fold.test])).any()
    assert 1 in np.concatenate([f.test for f in folds_of(graphs, 3, "random", 0, "regression")])
    assert split_notes(graphs, 3, split, "regression") == [
        "10 graphs have no target and are left out (0, 4, 8, 12, 16, …)"
    ]


def test_graphs_without_a_target_are_taken_out_of_given_folds():
    y = np.arange(6.0) + 0.5
    y[[1, 4]] = np.nan
    given_folds = [Fold(np.array([0, 1, 2]), np.array([3, 4, 5]), np.array([1]))]
    (fold,) = folds_of(with_columns(6, y), 10, given_folds, 0, "regression")
    assert (fold.train.tolist(), fold.test.tolist(), fold.validation) == ([0, 2], [3, 5], None)


@pytest.mark.parametrize("split", ["stratified", "random"])
def test_one_fold_is_80_10_10(split):
    y = np.array([0] * 60 + [1] * 40)
    graphs = with_columns(100, y)
    (fold,) = folds_of(graphs, 1, split, 0)
    check([fold], graphs)
    assert (len(fold.train), len(fold.test), len(fold.validation)) == (90, 10, 10)
    if split == "stratified":
        assert (y[fold.test] == 1).sum() == (y[fold.validation] == 1).sum() == 4


def test_the_default_split_is_stratified_for_classes_and_random_otherwise():
    y = np.array([0] * 30 + [1] * 10)
    graphs = with_columns(40, y)
    for a, b in zip(folds_of(graphs, 5), stratified_folds(y, 5, 0), strict=True):
        np.testing.assert_array_equal(a.test, b.test)
    numbers = with_columns(40)
    for a, b in zip(folds_of(numbers, 5, task="regression"), folds_of(numbers, 5, "random"), strict=True):
        np.testing.assert_array_equal(a.test, b.test)
    with pytest.raises(DataError, match="stratified folds need classes"):
        folds_of(numbers, 5, "stratified", 0, "regression")


def test_seeds_give_other_folds():
    graphs = with_columns(40, batch=np.arange(40) // 2)
    for split in ("random", "group:batch"):
        first, second = (folds_of(graphs, 4, split, seed, "regression") for seed in (0, 1))
        assert first[0].test.tolist() != second[0].test.tolist()


def test_the_grammar_of_splits():
    assert [str(Split.parse(text)) for text in ("random", "group:a b:c", "folds/x.json")] == [
        *("random", "group:a b:c", "folds/x.json")
    ]
    assert Split.parse("splits").is_file
    for text, words in {
        "group": "is written group:COLUMN",
        "time:": "is written time:COLUMN",
        "random:x": "is written random",
        "scafold": "did you mean scaffold",
    }.items():
        with pytest.raises(ConfigError, match=words):
            Split.parse(text)


def test_rare_classes_are_noted():
    graphs = with_columns(24, np.array(["a"] * 20 + ["b"] * 4))
    assert split_notes(graphs, 3, None, "classification") == []
    (note,) = split_notes(graphs, 10, None, "classification")
    assert note == "classes with fewer graphs than the 10 folds are missing from some of them: b (4)"


@pytest.mark.parametrize(
    ("split", "folds", "words"),
    [
        (
            "scaffold",
            1,
            "with one fold, scaffold does not depend on the seed; scaffold-balanced draws another division for each",
        ),
        ("group:batch", 1, "with one fold, group:batch does not depend on the seed; several folds do"),
        ("time:batch", 3, "time:batch does not depend on the seed"),
        ("scaffold-balanced", 1, None),
        ("scaffold", 2, "scaffold draws the same ones with these seeds"),
        ("group:batch", 3, None),
        ("random", 1, None),
    ],
)
def test_repetitions_with_the_same_folds_are_noted_with_the_remedy(split, folds, words):
    pytest.importorskip("rdkit")
    graphs = with_columns(len(SMILES), smiles=SMILES, batch=np.arange(len(SMILES)) // 2)
    for seeds in ((0,), (0, 1, 2)):
        rows = rows_of(graphs, named_methods("fgsd"), Evaluation(folds, split, seeds))
        notes = make_plan(rows, Limits())[0].data[0].notes
        expected = [f"every repetition has the same folds: {words}"] if words and len(seeds) > 1 else []
        assert notes == expected


def test_too_few_graphs_for_the_folds():
    with pytest.raises(DataError, match="10 graphs cannot be divided into 11 folds"):
        folds_of(with_columns(10), 11, "random", 0, "regression")
