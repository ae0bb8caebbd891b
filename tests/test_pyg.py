import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, MessagePassing, Sequential
from torch_geometric.transforms import Compose, ToUndirected

from gcaps.data import make_families
from gcaps.errors import GcapsError
from gcaps.features import FGSD
from gcaps.nn import MeanCovariance
from gcaps.pyg import AddFGSD, GraphCapsuleConv, MeanCovarianceAggregation, from_pyg, to_pyg
from gcaps.testing import hostile_graphs


@pytest.fixture(scope="module")
def families():
    return make_families(16)


@pytest.mark.parametrize(
    "options", [{}, {"rank": 2, "root": True, "count": True, "reduce": "sum"}], ids=["plain", "all"]
)
def test_aggregation_equals_the_module_by_index_and_by_ptr(options):
    aggregation = MeanCovarianceAggregation(4, **options)
    module = MeanCovariance(4, **options)
    module.load_state_dict(aggregation.readout.state_dict())
    x, ptr = torch.randn(10, 4), torch.tensor([0, 3, 3, 10])
    index = torch.tensor([0] * 3 + [2] * 7)
    expected = module(x, ptr=ptr)
    assert aggregation.out_channels == expected.size(1)
    torch.testing.assert_close(aggregation(x, ptr=ptr), expected)
    torch.testing.assert_close(aggregation(x, index), expected)
    torch.testing.assert_close(aggregation(x, index, dim_size=5)[:3], expected)
    assert aggregation(x, index, dim_size=5).size(0) == 5
    torch.testing.assert_close(aggregation(x), module(x))


def test_aggregation_takes_an_index_in_any_order():
    aggregation = MeanCovarianceAggregation(3)
    x, index = torch.randn(12, 3), torch.randint(0, 4, (12,))
    order = torch.argsort(index, stable=True)
    torch.testing.assert_close(aggregation(x, index, dim_size=4), aggregation(x[order], index[order], dim_size=4))


def test_aggregation_refuses_what_does_not_fit():
    aggregation = MeanCovarianceAggregation(3)
    with pytest.raises(ValueError, match="dim_size"):
        aggregation(torch.randn(4, 3), torch.tensor([0, 1, 2, 3]), dim_size=2)
    with pytest.raises(ValueError, match="two-dimensional"):
        aggregation(torch.randn(2, 4, 3), torch.tensor([0, 0, 1, 1]))


def test_aggregation_is_a_readout_of_a_pyg_model_and_learns(families):
    aggregation = MeanCovarianceAggregation(8, rank=3)
    model = Sequential(
        "x, edge_index, batch",
        [
            (GCNConv(1, 8), "x, edge_index -> x"),
            (aggregation, "x, batch -> x"),
            (torch.nn.Linear(aggregation.out_channels, 4), "x -> x"),
        ],
    )
    batch = next(iter(DataLoader(to_pyg(families), batch_size=16)))
    out = model(torch.ones(batch.num_nodes, 1), batch.edge_index, batch.batch)
    assert out.shape == (16, 4)
    torch.nn.functional.cross_entropy(out, batch.y).backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
    aggregation.reset_parameters()
    assert "rank=3" in repr(aggregation)


def test_aggregation_gathers_messages(families):
    class Neighborhood(MessagePassing):
        def forward(self, x, edge_index):
            return self.propagate(edge_index, x=x)

    data = to_pyg(families)[0]
    x = torch.randn(data.num_nodes, 2)
    out = Neighborhood(aggr=MeanCovarianceAggregation(2))(x, data.edge_index)
    around = x[data.edge_index[0, data.edge_index[1] == 0]]
    torch.testing.assert_close(out[0, :2], around.mean(0))
    torch.testing.assert_close(out[0, 2:], torch.cov(around.T, correction=0)[[0, 0, 1], [0, 1, 1]])


def test_fgsd_transform_equals_the_features_of_the_set():
    graphs = hostile_graphs(24, seed=2, weighted=True)
    datas = to_pyg(graphs)
    transform = AddFGSD(bins=8).fit(datas)
    expected = FGSD(8).fit_transform(graphs)
    attributes = graphs.x.astype(np.float32)
    made = [transform(data.to("cpu")) for data in datas]
    assert np.array_equal(torch.cat([d.x[:, 3:] for d in made]).numpy().astype(np.float32), expected)
    assert np.array_equal(torch.cat([d.x[:, :3] for d in made]).numpy().astype(np.float32), attributes)
    assert datas[0].x.size(1) == 3, "the graph given is not changed"


def test_fgsd_transform_of_a_batch_is_that_of_its_graphs(families):
    datas = to_pyg(families)
    transform = AddFGSD(bins=4, attr_name="fgsd").fit(datas)
    together = transform(Batch.from_data_list(datas)).fgsd
    assert torch.equal(together, torch.cat([transform(d).fgsd for d in datas]))


@pytest.mark.parametrize(
    "x", [None, torch.arange(3), torch.rand(3, 2, dtype=torch.float64)], ids=["none", "integers", "double"]
)
def test_fgsd_transform_joins_whatever_x_is_there(x):
    data = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3, y=torch.tensor([0.5]))
    out = Compose([ToUndirected(), AddFGSD(bins=2).fit([data])])(data)
    width = 0 if x is None else 1 if x.dim() == 1 else 2
    assert out.x.shape == (3, width + 4)
    assert out.x.is_floating_point()
    if width:
        torch.testing.assert_close(out.x[:, :width], x.view(3, width).to(out.x.dtype))


def test_fgsd_transform_takes_the_options_of_the_features(families):
    options = {"spacing": "quantile", "soft": True, "f": "biharmonic"}
    made = [AddFGSD(bins=4, attr_name="fgsd", **options).fit(to_pyg(families))(data).fgsd for data in to_pyg(families)]
    assert np.array_equal(torch.cat(made).numpy(), FGSD(4, **options).fit_transform(families))


def test_fgsd_transform_must_be_fitted_first(families):
    with pytest.raises(GcapsError, match="call fit with the training graphs first"):
        AddFGSD()(to_pyg(families)[0])


def test_conversions_are_the_data_packages(families):
    assert from_pyg(to_pyg(families)).fingerprint() == families.fingerprint()


class Explained(torch.nn.Module):
    """Two capsule layers with relations and edge attributes, and a mean over the nodes."""

    def __init__(self):
        super().__init__()
        self.first = GraphCapsuleConv(3, 8, num_relations=2, edge_dim=1, filter="mean")
        self.second = GraphCapsuleConv(self.first.width, 8, filter="adjacency")
        self.out = torch.nn.Linear(self.second.width, 2)

    def forward(self, x, edge_index, edge_type, edge_attr):
        x = self.first(x, edge_index, edge_type=edge_type, edge_attr=edge_attr)
        x = self.second(x, edge_index)
        return self.out(x.transpose(1, 2).flatten(1).mean(0, keepdim=True))


def explained_inputs():
    rng = torch.Generator().manual_seed(0)
    half = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
    edge_index = torch.cat([half, half.flip(0)], 1)
    x = torch.randn(5, 3, generator=rng)
    return x, edge_index, {"edge_type": torch.arange(12) % 2, "edge_attr": torch.randn(12, 1, generator=rng)}


def explainer(model, algorithm):
    return Explainer(
        model,
        algorithm,
        explanation_type="model",
        edge_mask_type="object",
        node_mask_type="attributes",
        model_config={"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"},
    )


def test_explainers_get_gradients_for_edge_masks():
    torch.manual_seed(0)
    model = Explained().eval()
    x, edge_index, edges = explained_inputs()
    found = explainer(model, GNNExplainer(epochs=20, lr=0.1))(x, edge_index, **edges)
    assert found.edge_mask.shape == (12,)
    assert float(found.edge_mask.std()) > 0.01, "the mask was trained"
    assert (found.edge_mask > 0).all(), "no edge is without a gradient"
    assert model.first.explain is not True, "masks are taken off again"
    again = model(x, edge_index, **edges)
    assert torch.equal(again, model(x, edge_index, **edges))


def test_an_edge_mask_of_zero_removes_the_edge():
    torch.manual_seed(0)
    model = Explained().double().eval()
    x, edge_index, edges = explained_inputs()
    x, edges["edge_attr"] = x.double(), edges["edge_attr"].double()
    keep = torch.ones(12, dtype=torch.bool)
    keep[[2, 8]] = False
    mask = keep.double().requires_grad_()
    set_masks(model, mask, edge_index, apply_sigmoid=False)
    masked = model(x, edge_index, **edges)
    masked.square().sum().backward()
    assert (mask.grad != 0).all()
    clear_masks(model)
    cut = model(x, edge_index[:, keep], edges["edge_type"][keep], edges["edge_attr"][keep])
    torch.testing.assert_close(masked, cut)
