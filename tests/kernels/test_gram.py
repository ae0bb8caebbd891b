import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from gcaps.kernels.gram import gram, squares


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
