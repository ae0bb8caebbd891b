import numpy as np
import pytest
import torch

from gcaps.nn import batch_filter, edge_filter
from gcaps.nn.recurrent import GCNGRU, GCNLSTM, GraphCapsuleGRU, GraphCapsuleLSTM
from gcaps.testing import assert_batch_equals_singles, assert_permutation_invariant, hostile_graphs
from tests.conftest import whole_batch
from tests.oracle import dense, recurrent

CELLS = [GraphCapsuleGRU, GraphCapsuleLSTM, GCNGRU, GCNLSTM]


def cell_of(kind, columns):
    if kind in (GCNGRU, GCNLSTM):
        return kind(columns, 3).double(), "kipf"
    return kind(columns, 3, 2, 2, "mean").double(), "mean"


def run(cell, x, M, steps=3):
    state = None
    for step in range(steps):
        state = cell(x * (step + 1), M, state)
    return state


@pytest.mark.parametrize("kind", CELLS)
def test_cell_matches_the_dense_oracle_over_several_steps(kind):
    torch.manual_seed(1)
    cell, name = cell_of(kind, 2)
    for parameter in cell.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    graphs = hostile_graphs(8, seed=5, largest=8)
    x = np.random.default_rng(0).standard_normal((graphs.num_nodes, 2))
    batch = whole_batch(graphs, x)
    found = [part.detach().numpy() for part in run(cell, batch.x, batch_filter(name, batch))]

    def oracle_gate(module, M):
        if hasattr(module, "linear"):
            W, b = module.linear.weight.detach().numpy(), module.linear.bias.detach().numpy()
            return lambda F: (M @ F @ W.T + b)[:, :, None]
        W, b = module.weight.detach().numpy(), module.bias.detach().numpy()
        return lambda F: recurrent.convolution(F, M, W, b, 3.0)

    for g in range(len(graphs)):
        nodes = slice(graphs.ptr[g], graphs.ptr[g + 1])
        M = dense.filter_matrix(name, dense.adjacency(graphs[g]))
        gates = oracle_gate(cell.gates, M)
        H = np.zeros((graphs.sizes[g], 3, cell.capsule_size))
        C = H.copy()
        for step in range(3):
            if cell.form == "gru":
                H = recurrent.gru(x[nodes] * (step + 1), H, gates, oracle_gate(cell.candidate, M))
            else:
                H, C = recurrent.lstm(x[nodes] * (step + 1), H, C, gates)
        np.testing.assert_allclose(found[0][nodes], H, atol=1e-10)
        if cell.form == "lstm":
            np.testing.assert_allclose(found[1][nodes], C, atol=1e-10)


@pytest.mark.parametrize("kind", CELLS)
def test_cell_gradcheck(kind):
    graphs = hostile_graphs(8, seed=2, largest=3)[[2, 5, 6]]
    batch = whole_batch(graphs, np.random.default_rng(0).standard_normal((graphs.num_nodes, 1)))
    cell, name = cell_of(kind, 1)
    M = batch_filter(name, batch)
    names, values = zip(*cell.named_parameters(), strict=True)

    def output(x, *weights):
        state = None
        for step in range(2):
            state = torch.func.functional_call(cell, dict(zip(names, weights, strict=True)), (x + step, M, state))
        return state

    inputs = [batch.x, *values]
    assert torch.autograd.gradcheck(output, [t.detach().clone().requires_grad_() for t in inputs])


@pytest.mark.parametrize("kind", CELLS)
def test_state_sums_do_not_depend_on_node_order_or_company(kind):
    torch.manual_seed(0)
    cell, name = cell_of(kind, 3)

    def total(graphs):
        batch = whole_batch(graphs, graphs.x)
        H = run(cell, batch.x, batch_filter(name, batch))[0].detach().flatten(1).numpy()
        return np.add.reduceat(H**3, graphs.ptr[:-1])

    for weighted in (False, True):
        graphs = hostile_graphs(16, seed=3, weighted=weighted, largest=10)
        assert_permutation_invariant(total, graphs, atol=1e-9)
        assert_batch_equals_singles(total, graphs, atol=1e-9)


@pytest.mark.parametrize("kind", [GraphCapsuleGRU, GraphCapsuleLSTM])
def test_state_stays_within_one_for_any_input(kind):
    x = torch.tensor([[0.0], [1e30], [-1e10]])
    M = edge_filter("mean", torch.tensor([[0, 1], [1, 0]]), None, x)
    H = run(kind(1, 2), x, M)[0]
    assert torch.isfinite(H).all()
    assert H.abs().max() <= 1
