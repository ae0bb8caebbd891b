import numpy as np

from gcaps.data import random_molecules, write_graphs


def test_molecules_have_the_promised_size_and_classes(tmp_path):
    graphs = write_graphs(random_molecules(9000, seed=3), tmp_path / "m.gset")
    assert len(graphs) == 9000
    assert abs(graphs.num_nodes / 9000 - 25) < 0.3
    assert abs(graphs.num_edges / 9000 - 27) < 0.5
    assert 0.4 < graphs.y.mean() < 0.6
    assert graphs.notes == {}


def test_class_is_whether_nitrogen_and_oxygen_are_joined():
    graphs = next(random_molecules(300))
    for one in graphs:
        ends = one.node_labels[one.edge_index, 0]
        assert one.y == int(((ends[0] == 7) & (ends[1] == 8)).any())


def test_every_molecule_is_connected():
    from gcaps.data import facts

    found = facts(next(random_molecules(2000)))
    assert found.disconnected == 0
    assert found.identical.groups < 5


def test_the_same_seed_gives_the_same_graphs_however_many_are_asked_for():
    few, many = next(random_molecules(100, seed=1)), next(random_molecules(5000, seed=1))
    assert few.fingerprint() == many[:100].fingerprint()
    assert next(random_molecules(100, seed=2)).fingerprint() != few.fingerprint()
    chunks = list(random_molecules(10_000, seed=1))
    assert [len(chunk) for chunk in chunks] == [8192, 1808]
    assert not np.array_equal(chunks[0].col[:100], chunks[1].col[:100])
