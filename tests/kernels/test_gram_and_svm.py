import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from gcaps.kernels.gram import gram, squares
from gcaps.kernels.svm import choose, class_scores, fit_svm, inner_splits


def skewed(rows: int, seed: int) -> csr_array:
    """Few frequent columns, many rare and empty ones."""
    rng = np.random.default_rng(seed)
    parts = [random_array((rows, 5), density=0.9, rng=rng), random_array((rows, 400), density=0.02, rng=rng)]
    X = np.concatenate([part.toarray() for part in parts], axis=1)
    X[0] = 0
    return csr_array(np.rint(10 * X))


def test_gram_of_frequent_and_rare_columns_is_the_dense_product() -> None:
    X, Y = skewed(80, 1), skewed(50, 2)
    np.testing.assert_array_equal(gram(X), X.toarray() @ X.toarray().T)
    np.testing.assert_array_equal(gram(X, Y), X.toarray() @ Y.toarray().T)
    np.testing.assert_array_equal(squares(X), (X.toarray() ** 2).sum(axis=1))
    with pytest.raises(ValueError, match="405 and 4 columns"):
        gram(X, Y[:, :4])


def test_the_best_kernel_and_the_smallest_sufficient_c_are_chosen() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    x = np.eye(3)[y] + 0.05 * rng.standard_normal((60, 3))
    noise = rng.standard_normal((60, 3))
    choice = choose([noise @ noise.T, x @ x.T, x @ x.T], y, [100.0, 1.0], inner_splits(y, 5, 0))
    assert choice == (1, 1.0, 1.0)


def test_scores_sum_to_one_and_agree_with_the_predictions() -> None:
    rng = np.random.default_rng(1)
    for classes in (2, 4):
        y = np.arange(60) % classes
        x = np.eye(classes)[y] + rng.standard_normal((60, classes))
        K = x @ x.T
        machine = fit_svm(K[:40, :40], y[:40], 1.0)
        scores = class_scores(machine, K[40:, :40], classes + 1)
        np.testing.assert_allclose(scores.sum(axis=1), 1)
        np.testing.assert_array_equal(scores[:, classes], 0)
        np.testing.assert_array_equal(scores.argmax(axis=1), machine.predict(K[40:, :40]))


def test_inner_folds_shrink_to_the_smallest_class() -> None:
    y = np.array([0] * 10 + [1] * 3)
    assert len(inner_splits(y, 5, 0)) == 3
    assert len(inner_splits(np.array([0] * 10 + [1]), 5, 0)) == 2
