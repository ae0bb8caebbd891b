import json

import numpy as np
import pytest

from gcaps.errors import DataError
from gcaps.evaluation import Fold, read_splits, stratified_folds
from gcaps.evaluation.outcome import fold_digest
from gcaps.evaluation.splits import write_splits


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


def test_too_many_folds_for_the_smallest_class_is_an_error():
    with pytest.raises(DataError, match="one has 4"):
        stratified_folds(np.array([0] * 20 + [1] * 4), 10, 0)


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
