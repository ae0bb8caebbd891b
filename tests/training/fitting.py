"""Fit a network as its estimator does, with the pieces in hand."""

import numpy as np

from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Classes
from gcaps.estimators.auto import resolve
from gcaps.training import TrainingData, fit_network


def fit(graphs, train, config, seed, **options):
    """The fitted network, its curves and its epoch."""
    classes = Classes.of(graphs.y)
    data = TrainingData(PreparedSet(graphs), np.asarray(train), classes.encode(graphs.y), len(classes))
    return fit_network(data, resolve(config, graphs, train)[0], seed, **options)
