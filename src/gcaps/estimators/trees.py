"""Forests and boosted trees as flat arrays, without pickle: taken from scikit-learn, same predictions."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numba import njit
from scipy.special import expit, softmax
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from gcaps.data.arrays import Array, Floats, pointer
from gcaps.errors import ModelError

LEAF = -1
"""Child of a leaf."""
ROWS = 64
"""Rows that go through all trees together, so that they stay in the cache."""
Link = Literal["mean", "identity", "logistic", "softmax"]
"""Transformation of the sum of the trees' values: mean; sum; probabilities of two classes; of several."""


class Trees:
    """Trees of a random forest or of gradient boosting.

    Args:
        ptr: [T+1] tree t has the nodes ptr[t] … ptr[t+1]−1.
        children: [N, 2] left and right child, counted within the tree; −1 at a leaf.
        feature: [N] column that a node looks at.
        threshold: [N] values up to it go left.
        value: [N, C] what a leaf adds to each of C sums: class probabilities, a value, or a step of boosting.
        missing_left: [N] whether NaN goes left; None: everywhere.
        baseline: [C] what the sums begin with; None: 0.
        link: what becomes of the sums.
    """

    def __init__(
        self,
        ptr: Array,
        children: Array,
        feature: Array,
        threshold: Array,
        value: Array,
        missing_left: Array | None = None,
        baseline: Array | None = None,
        link: Link = "mean",
    ) -> None:
        self.ptr, self.children, self.feature, self.value = ptr, children, feature, value
        # a split that separates missing values from all others has the threshold ∞; saved arrays are finite
        self.threshold = np.minimum(threshold, np.finfo(np.float64).max)
        self.missing_left = np.ones(len(feature), dtype=bool) if missing_left is None else missing_left
        self.baseline = np.zeros(value.shape[1]) if baseline is None else baseline
        self.link = link

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @classmethod
    def of_forest(cls, forest: RandomForestClassifier | RandomForestRegressor) -> Trees:
        """Take the trees of a fitted forest."""
        trees = [tree.tree_ for tree in forest.estimators_]
        values = [tree.value[:, 0, :] for tree in trees]
        if isinstance(forest, RandomForestClassifier):
            values = [_probabilities(value, forest.classes_) for value in values]
        return cls(
            pointer(np.array([tree.node_count for tree in trees])),
            np.concatenate([np.stack([tree.children_left, tree.children_right], axis=1) for tree in trees]).astype(
                "i4"
            ),
            np.concatenate([tree.feature for tree in trees]).astype(np.int32),
            np.concatenate([tree.threshold for tree in trees]),
            np.concatenate(values),
            np.concatenate([tree.missing_go_to_left for tree in trees]).astype(bool),
        )

    @classmethod
    def of_boosting(cls, model: HistGradientBoostingClassifier | HistGradientBoostingRegressor) -> Trees:
        """Take the trees of a fitted gradient boosting model on numbers; scikit-learn has them under private names."""
        steps: list[list[Any]] = model._predictors
        baseline = np.asarray(model._baseline_prediction, dtype=np.float64).ravel()
        trees = [(output, tree.nodes) for step in steps for output, tree in enumerate(step)]
        outputs = np.concatenate([np.full(len(nodes), output) for output, nodes in trees])
        nodes: Array = np.concatenate([nodes for _, nodes in trees])
        leaf = nodes["is_leaf"].astype(bool)
        children = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int32)
        children[leaf] = LEAF
        value = np.zeros((len(nodes), len(baseline)))
        value[leaf, outputs[leaf]] = nodes["value"][leaf]
        link: Link = "identity"
        if isinstance(model, HistGradientBoostingClassifier):
            link = "logistic" if len(baseline) == 1 else "softmax"
        return cls(
            pointer(np.array([len(nodes) for _, nodes in trees])),
            children,
            nodes["feature_idx"].astype(np.int32),
            nodes["num_threshold"].astype(np.float64),
            value,
            nodes["missing_go_to_left"].astype(bool),
            baseline,
            link,
        )

    @classmethod
    def constant(cls, value: list[float]) -> Trees:
        """Return a single leaf of that value, for a target that no training graph has."""
        none = np.zeros(1)
        return cls(np.array([0, 1]), np.full((1, 2), LEAF), none.astype(np.int64), none, np.array([value]))

    @classmethod
    def restored(cls, arrays: dict[str, Array], link: Link, outputs: int) -> Trees:
        """Take trees out of a file.

        Every path ends: children come after their parent, within its tree.

        Args:
            arrays: what :meth:`arrays` returned.
            link: what becomes of the sums.
            outputs: number of classes; 1 for values.

        Raises:
            ModelError: they are no trees.
        """
        kinds = {"ptr": "i", "children": "i", "feature": "if", "missing_left": "b"}
        kinds |= dict.fromkeys(("threshold", "value", "baseline"), "f")
        if set(arrays) != set(kinds) or any(array.dtype.kind not in kinds[name] for name, array in arrays.items()):
            raise ModelError("the trees are damaged (their arrays are not those of trees)")
        ptr, children, value = arrays["ptr"], arrays["children"], arrays["value"]
        count = len(arrays["feature"])
        sums = 1 if link in ("identity", "logistic") else outputs
        shapes = {"children": (count, 2), "threshold": (count,), "missing_left": (count,), "feature": (count,)}
        shapes |= {"value": (count, sums), "baseline": (sums,), "ptr": (max(len(ptr), 2),)}
        if any(arrays[name].shape != shape for name, shape in shapes.items()):
            raise ModelError("the trees are damaged (the shapes of their arrays do not agree)")
        if ptr[0] != 0 or ptr[-1] != count or (np.diff(ptr) < 1).any():
            raise ModelError("the trees are damaged (their nodes do not follow one another)")
        place = np.arange(count) - np.repeat(ptr[:-1], np.diff(ptr))
        inner, size = children[:, 0] != LEAF, np.repeat(np.diff(ptr), np.diff(ptr))
        below = children[inner]
        if (below <= place[inner, None]).any() or (below >= size[inner, None]).any():
            raise ModelError("the trees are damaged (a node is not below its parent)")
        if (arrays["feature"][inner] < 0).any() or value.shape[1] < 1:
            raise ModelError("the trees are damaged (a node looks at no column)")
        return cls(**arrays, link=link)

    def predict(self, x: Floats) -> Floats:
        """Return class probabilities [n, C] or values [n, 1] for rows x [n, d], as scikit-learn does.

        Raises:
            ModelError: a tree looks at a column that there is not.
        """
        if self.feature.max(initial=0) >= x.shape[1]:
            raise ModelError(f"a tree looks at column {int(self.feature.max())} of {x.shape[1]}; the model is damaged")
        total = np.tile(np.asarray(self.baseline, dtype=np.float64), (len(x), 1))
        self._add(x, self.value, total)
        if self.link == "mean":
            total /= len(self)
        elif self.link == "logistic":
            positive = expit(total[:, 0])
            return np.stack([1.0 - positive, positive], axis=1)
        elif self.link == "softmax":
            shares: Floats = softmax(total, axis=1)
            return shares
        return total

    def spread(self, x: Floats) -> Floats | None:
        """Return the standard deviation of the trees' values for rows x [n, d], [n]; None for boosted trees."""
        if self.link != "mean":
            return None
        squares = np.zeros((len(x), self.value.shape[1]))
        self._add(x, np.square(self.value), squares)
        found: Floats = np.sqrt(np.maximum(squares / len(self) - np.square(self.predict(x)), 0.0))[:, -1]
        return found

    def _add(self, x: Floats, value: Floats, total: Floats) -> None:
        """Add the value [N, C] of the leaf that each row of x reaches in each tree to ``total`` [n, C]."""
        rows = np.ascontiguousarray(x, dtype=np.float32)
        _add_leaves(rows, self.ptr, self.children, self.feature, self.threshold, self.missing_left, value, total)

    def arrays(self) -> dict[str, Array]:
        """Return the constructor's arguments but ``link``."""
        return {name: value for name, value in vars(self).items() if name != "link"}


@njit(cache=True, nogil=True)
def _add_leaves(
    x: Array,
    ptr: Array,
    children: Array,
    feature: Array,
    threshold: Array,
    missing_left: Array,
    value: Array,
    total: Array,
) -> None:
    """Add the value of the leaf that each row reaches in each tree to ``total`` [n, C], tree by tree."""
    for start in range(0, len(x), ROWS):
        for t in range(len(ptr) - 1):
            first = ptr[t]
            for i in range(start, min(start + ROWS, len(x))):
                node = first
                while children[node, 0] != LEAF:
                    entry = x[i, feature[node]]
                    left = missing_left[node] if np.isnan(entry) else entry <= threshold[node]
                    node = first + children[node, 0 if left else 1]
                for c in range(value.shape[1]):
                    total[i, c] += value[node, c]


def _probabilities(value: Floats, classes: Array) -> Floats:
    """[N, C] class probabilities from class counts; a column for each of the classes 0 and 1 where one is missing."""
    share: Floats = value / value.sum(axis=1, keepdims=True)
    if len(classes) > 1:
        return share
    return np.where(np.arange(2) == int(classes[0]), share, 0.0)
