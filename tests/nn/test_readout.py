import numpy as np
import pytest
import torch

from gcaps.nn import MaxSortPool, MeanCovariance, max_sort_pool, segment_covariance, segment_mean
from gcaps.testing import assert_permutation_invariant
from tests.conftest import whole_batch
from tests.oracle import dense


def test_eq7_mean_and_covariance_match_dense_oracle(hostile):
    z = np.random.default_rng(0).standard_normal((hostile.num_nodes, 5)) * 10
    batch = whole_batch(hostile, z)
    found = MeanCovariance(5, count=True)(batch.x, batch.batch, batch.ptr).numpy()
    for number in range(len(hostile)):
        mu, C = dense.mean_covariance(z[hostile.ptr[number] : hostile.ptr[number + 1]])
        expected = np.concatenate([mu, C[np.triu_indices(5)], [np.log1p(hostile.sizes[number])]])
        np.testing.assert_allclose(found[number], expected, atol=1e-10)


def covariance(x, index, ptr):
    return segment_covariance(x, segment_mean(x, index, ptr), index, ptr)


def test_covariance_is_the_same_in_one_group_and_in_many(hostile, monkeypatch):
    z = np.random.default_rng(0).standard_normal((hostile.num_nodes, 5))
    batch = whole_batch(hostile, z)
    found = []
    for padding in (float("inf"), -1):
        monkeypatch.setattr("gcaps.nn.readout.MAX_PADDING", padding)
        x = batch.x.clone().requires_grad_()
        out = covariance(x, batch.batch, batch.ptr)
        out.sin().sum().backward()
        found.append((out.detach(), x.grad))
    for one, many in zip(*found, strict=True):
        torch.testing.assert_close(one, many, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("padding", [3e7, -1])
def test_covariance_gradcheck_in_one_group_and_in_many(padding, monkeypatch):
    monkeypatch.setattr("gcaps.nn.readout.MAX_PADDING", padding)
    z = torch.randn(12, 3, dtype=torch.float64, requires_grad=True)
    ptr, index = torch.tensor([0, 1, 3, 12]), torch.tensor([0] + [1] * 2 + [2] * 9)
    assert torch.autograd.gradcheck(lambda x: covariance(x, index, ptr), [z])


@pytest.mark.parametrize("reduce", ["mean", "sum"])
def test_low_rank_covariance_is_that_of_the_projected_columns(reduce):
    z, ptr = torch.randn(20, 6, dtype=torch.float64), torch.tensor([0, 1, 8, 20])
    readout = MeanCovariance(6, rank=3, reduce=reduce).double()
    found = readout(z, ptr=ptr).detach().numpy()
    projected = (z @ readout.projection.weight.t()).detach().numpy()
    for number, (a, b) in enumerate([(0, 1), (1, 8), (8, 20)]):
        mu, _ = dense.mean_covariance(z.numpy()[a:b])
        _, C = dense.mean_covariance(projected[a:b])
        factor = b - a if reduce == "sum" else 1
        expected = np.concatenate([mu, C[np.triu_indices(3)]]) * factor
        np.testing.assert_allclose(found[number], expected, atol=1e-12)


def test_one_node_has_no_covariance():
    out = MeanCovariance(3)(torch.tensor([[1.0, 2.0, 3.0]]))
    assert out.tolist() == [[1.0, 2.0, 3.0, 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("rank", [None, 2])
def test_readout_gradcheck(rank, root):
    z = torch.randn(12, 3, dtype=torch.float64, requires_grad=True)
    readout = MeanCovariance(3, rank, root=root, count=True).double()
    assert torch.autograd.gradcheck(lambda x: readout(x, ptr=torch.tensor([0, 1, 3, 12])), [z])


def test_signed_root_keeps_sign_and_has_a_finite_gradient_at_zero():
    z = torch.zeros(4, 2, requires_grad=True)
    MeanCovariance(2, root=True)(z).sum().backward()
    assert torch.isfinite(z.grad).all()


def test_index_ptr_and_neither_agree_and_missing_graphs_are_zero():
    z = torch.randn(6, 2)
    readout = MeanCovariance(2)
    index, ptr = torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 3, 6])
    torch.testing.assert_close(readout(z, index), readout(z, ptr=ptr))
    torch.testing.assert_close(readout(z[:3]), readout(z, index)[:1])
    assert readout(z, index, dim_size=4)[2:].abs().sum() == 0
    with pytest.raises(ValueError, match="ascending"):
        readout(z, index.flip(0))


def test_out_channels_is_the_width_of_the_output():
    for settings in ({}, {"rank": 3}, {"count": True}, {"rank": 2, "count": True}):
        readout = MeanCovariance(5, **settings)
        assert readout(torch.randn(4, 5)).shape == (1, readout.out_channels)


def test_max_sort_pool_keeps_the_first_k_by_the_last_column():
    z = torch.tensor([[1.0, 5.0], [2.0, 7.0], [0.0, -9.0], [3.0, 1.0]])
    out = max_sort_pool(z, 2, ptr=torch.tensor([0, 3, 4]))
    assert out.tolist() == [[2.0, 7.0, 1.0, 5.0], [3.0, 1.0, 0.0, 0.0]]


def test_max_sort_pool_is_invariant_on_ties_and_keeps_large_negative_values(hostile):
    def pooled(graphs):
        labels = graphs.node_labels.astype(np.float64)
        z = np.concatenate([graphs.x.round(), -1e6 * labels], axis=1)  # many ties in the last column
        batch = whole_batch(graphs, z)
        return MaxSortPool(4)(batch.x, ptr=batch.ptr).numpy()

    assert_permutation_invariant(pooled, hostile, atol=0)
    assert pooled(hostile).min() < -1e5


def test_max_sort_pool_gradcheck():
    z = torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: max_sort_pool(x, 3, ptr=torch.tensor([0, 2, 7])), [z])
