"""Gaussian-process regression on a Gram matrix against dense formulas and scikit-learn."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel

from gcaps.kernels.gaussian_process import fit_gaussian_process


class Gram(Kernel):
    """A Gram matrix as a kernel of scikit-learn, whose X are rows of the matrix."""

    def __init__(self, K):
        self.K = K

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        K = self.K[np.ix_(X[:, 0].astype(int), Y[:, 0].astype(int))]
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X):
        return self.K.diagonal()[X[:, 0].astype(int)]

    def is_stationary(self):
        return False


@pytest.fixture(scope="module")
def problem():
    """Gram matrix of 60 points, of which 45 have targets with noise."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 60)
    K = np.exp(-((x[:, None] - x) ** 2))
    y = np.sin(2 * x) + 0.2 * rng.standard_normal(60)
    return K, y[:45]


def test_noise_scale_and_mean_are_those_of_scikit_learn(problem):
    K, y = problem
    rows = np.arange(60)[:, None]
    kernel = ConstantKernel(1.0) * Gram(K) + WhiteKernel(0.1)
    theirs = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, alpha=0.0, random_state=0).fit(rows[:45], y)
    ours = fit_gaussian_process(K[:45, :45], y[:, None])
    assert ours.likelihood == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-3)
    assert ours.noise[0] == pytest.approx(theirs.kernel_.k2.noise_level, rel=0.03)
    assert ours.scale[0] == pytest.approx(theirs.kernel_.k1.k1.constant_value, rel=0.03)
    found = ours.mean.scores(K[:, :45], "regression")[:, 0]
    np.testing.assert_allclose(found, theirs.predict(rows), atol=5e-3)


def test_mean_and_likelihood_are_the_dense_formulas_with_weights(problem):
    K, y = problem
    weight = np.linspace(0.5, 3.0, 45)
    found = fit_gaussian_process(K[:45, :45], y[:, None], weight)
    covariance = found.scale[0] * K[:45, :45] + np.diag(found.noise[0] / weight)
    expected = found.scale[0] * K[:, :45] @ np.linalg.inv(covariance) @ y
    np.testing.assert_allclose(found.mean.scores(K[:, :45], "regression")[:, 0], expected, atol=1e-8)
    assert found.likelihood == pytest.approx(multivariate_normal(cov=covariance).logpdf(y), abs=1e-6)


def test_no_other_noise_or_scale_is_likelier(problem):
    K, y = problem
    found = fit_gaussian_process(K[:45, :45], y[:, None])
    for noise in np.geomspace(1e-5, 10, 30):
        for scale in np.geomspace(1e-2, 10, 30):
            other = multivariate_normal(cov=scale * K[:45, :45] + noise * np.eye(45)).logpdf(y)
            assert other <= found.likelihood + 1e-3


def test_each_target_is_fitted_to_the_graphs_that_have_it(problem):
    K, y = problem
    both = np.stack([y, -y, np.full(45, np.nan)], axis=1)
    both[::3, 1] = np.nan
    found = fit_gaussian_process(K[:45, :45], both)
    known = np.flatnonzero(~np.isnan(both[:, 1]))
    alone = fit_gaussian_process(K[np.ix_(known, known)], both[known, 1:2])
    np.testing.assert_array_equal(found.mean.coefficients[1, known], alone.mean.coefficients[0])
    np.testing.assert_array_equal(found.mean.coefficients[1, ::3], 0)
    np.testing.assert_array_equal(found.mean.coefficients[2], 0)


def test_duplicates_and_a_constant_target_are_no_obstacle():
    K = np.ones((6, 6))
    found = fit_gaussian_process(K, np.array([[1.0], [1.0], [-1.0], [1.0], [-1.0], [-1.0]]))
    np.testing.assert_allclose(found.mean.scores(K, "regression"), 0.0, atol=1e-9)
    assert np.isfinite(fit_gaussian_process(K, np.zeros((6, 1))).likelihood)
