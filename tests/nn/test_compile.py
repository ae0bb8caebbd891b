"""torch.compile and torch.export of capsule models: what they record computes what the model computes."""

import copy
import io
import shutil

import pytest
import torch
from torch.export import Dim

from gcaps.nn import CAPSULES, GraphCapsuleConv, MeanCovariance, flatten_capsules
from gcaps.pyg import MeanCovarianceAggregation

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
MODELS = {
    "laplacian and aggregation": {"matrix": "laplacian", "readout": MeanCovarianceAggregation},
    "adjacency and module": {"matrix": "adjacency", "readout": MeanCovariance, "rank": 5},
}


class Model(torch.nn.Module):
    def __init__(self, matrix, readout, rank=None):
        super().__init__()
        self.first = GraphCapsuleConv(4, 6, 3, filter=matrix, bound=2.0, normalize=True, bias=False)
        self.second = GraphCapsuleConv(self.first.width, 5, filter=matrix)
        self.pool = readout(self.second.width, rank, count=True)
        self.head = torch.nn.Linear(self.pool.out_channels, 3)

    def forward(self, x, edge_index, batch):
        capsules = self.second(self.first(x, edge_index), edge_index)
        return self.head(self.pool(flatten_capsules(capsules), batch))


def graphs(count, seed=0):
    """(x, edge_index, batch) of random graphs; self-loops and repeated arcs are among the edges, arcs in any order."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(1, 12, (count,), generator=generator)
    batch = torch.repeat_interleave(torch.arange(count), sizes)
    first = sizes.cumsum(0) - sizes
    source = torch.randint(len(batch), (3 * len(batch),), generator=generator)
    inside = torch.rand(len(source), generator=generator) * sizes[batch[source]]
    target = first[batch[source]] + inside.long()
    assert (source == target).any()
    return torch.randn(len(batch), 4, generator=generator), torch.stack([source, target]), batch


def training_step(run, model, inputs):
    model.zero_grad()
    logits = run(*inputs)
    torch.nn.functional.cross_entropy(logits, inputs[2].unique() % 3).backward()
    return [logits.detach(), *(p.grad.clone() for p in model.parameters())]


def assert_compiled_training_equals_eager(backend, settings):
    torch._dynamo.reset()
    model = Model(**settings)
    eager = copy.deepcopy(model)
    compiled = torch.compile(model, backend=backend, fullgraph=True, dynamic=True)
    for count in (4, 7):
        inputs = graphs(count, seed=count)
        found, expected = training_step(compiled, model, inputs), training_step(eager, eager, inputs)
        for one, other in zip(found, expected, strict=True):
            # single entries of a gradient cancel; what is lost then is measured by the largest
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5 * max(1.0, float(other.abs().max())))


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_compiled_training_step_equals_eager(settings):
    assert_compiled_training_equals_eager("aot_eager", settings)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when inductor is imported
@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="inductor needs a C++ compiler")
@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_inductor_training_step_equals_eager(settings):
    assert_compiled_training_equals_eager("inductor", settings)


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_exported_program_serves_batches_of_any_size(settings):
    model = Model(**settings).eval()
    shapes = ({0: Dim.AUTO}, {1: Dim.AUTO}, {0: Dim.AUTO})
    program = torch.export.export(model, graphs(3), dynamic_shapes=shapes)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for count in (1, 3, 20):
        inputs = graphs(count, seed=count)
        torch.testing.assert_close(loaded(*inputs), model(*inputs), **CLOSE)
    x, edge_index, batch = graphs(3)
    bare = (x, edge_index[:, :0], batch)
    torch.testing.assert_close(loaded(*bare), model(*bare), **CLOSE)


def test_exported_readout_takes_ptr_and_an_index_in_any_order():
    pool = MeanCovarianceAggregation(3)
    x, index, ptr = torch.randn(6, 3), torch.tensor([0, 0, 1, 1, 1, 3]), torch.tensor([0, 2, 5, 5, 6])
    by_ptr = torch.export.export(pool, (x,), {"ptr": ptr}, dynamic_shapes={"x": {0: Dim.AUTO}, "ptr": {0: Dim.AUTO}})
    by_index = torch.export.export(pool, (x, index), dynamic_shapes={"x": {0: Dim.AUTO}, "index": {0: Dim.AUTO}})
    x, index, ptr = torch.randn(9, 3), torch.tensor([2, 0, 1, 0, 1, 0, 0, 2, 2]), torch.tensor([0, 4, 9])
    torch.testing.assert_close(by_ptr.module()(x, ptr=ptr), pool(x, ptr=ptr))
    torch.testing.assert_close(by_index.module()(x, index), pool(x, index))


# torch's own, wherever a graph is cut in two and a gradient is wanted
CUT = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")


@CUT
@pytest.mark.parametrize("capsule", CAPSULES)
def test_every_capsule_compiles(capsule):
    """`polynomial` cuts the graph in two, since its steps follow the sizes of neighborhoods; all others stay whole."""
    torch._dynamo.reset()
    conv = GraphCapsuleConv(4, 3, 4, 2, capsule)
    compiled = torch.compile(conv, backend="eager", fullgraph=capsule != "polynomial", dynamic=True)
    for count in (3, 5):
        x, edge_index, _ = graphs(count, seed=count)
        torch.testing.assert_close(compiled(x, edge_index), conv(x, edge_index), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["symmetric", "random_walk", "kipf", "mean", "cayley"])
def test_other_filters_compile_with_weights_that_learn(name):
    torch._dynamo.reset()
    conv = GraphCapsuleConv(4, 3, 2, filter=name).double()
    compiled = torch.compile(conv, backend="eager", fullgraph=True, dynamic=True)
    x, edge_index, _ = graphs(4)
    grads = []
    for run in (compiled, conv):
        weight = torch.linspace(0.5, 2, edge_index.size(1), dtype=torch.float64, requires_grad=True)
        run(x.double(), edge_index, weight).sum().backward()
        grads.append(weight.grad)
    torch.testing.assert_close(*grads)


def test_a_chebyshev_layer_compiles_and_scales_each_graph_by_itself():
    torch._dynamo.reset()
    conv = GraphCapsuleConv(4, 3, 2, 2, filter="chebyshev")
    compiled = torch.compile(conv, backend="eager", fullgraph=True, dynamic=True)
    x, edge_index, batch = graphs(4)
    loops = torch.arange(len(x)).expand(2, -1)
    with_loops = torch.cat([edge_index, loops], dim=1)
    expected = conv(x, edge_index, None, batch)
    torch.testing.assert_close(compiled(x, with_loops, None, batch), expected, **CLOSE)
