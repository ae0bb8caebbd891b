"""The node features X of a set, with its one-hot columns as numbers and not as zeros and ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcaps.data.arrays import Array, Floats


@dataclass(frozen=True, slots=True)
class NodeMatrix:
    """X [N, d] = [one-hot columns | dense columns].

    A label or a degree is one number, however many columns its one-hot form has: X takes a fraction of the memory, and
    its product with a weight matrix is a choice of rows.
    """

    one_hot_index: Array
    """[N, c] int32: in which column each one stands, c ones a node; −1: there is none."""
    one_hot: int
    """How many one-hot columns there are."""
    dense: Floats
    """[N, d − one_hot] float32."""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, d)"""
        return len(self.dense), self.one_hot + self.dense.shape[1]

    def __len__(self) -> int:
        return len(self.dense)

    def __getitem__(self, nodes: Array) -> NodeMatrix:
        return NodeMatrix(self.one_hot_index[nodes], self.one_hot, self.dense[nodes])

    def toarray(self) -> Floats:
        """X itself."""
        out = np.zeros(self.shape, dtype=np.float32)
        for column in self.one_hot_index.T:
            known = np.flatnonzero(column >= 0)
            out[known, column[known]] = 1
        out[:, self.one_hot :] = self.dense
        return out

    @staticmethod
    def stack(parts: list[NodeMatrix]) -> NodeMatrix:
        """Matrices with the same rows side by side; one-hot columns come first."""
        offsets = np.cumsum([0, *(part.one_hot for part in parts)])
        one_hot_index = [
            np.where(part.one_hot_index >= 0, part.one_hot_index + offset, -1)
            for part, offset in zip(parts, offsets[:-1], strict=True)
        ]
        return NodeMatrix(
            np.concatenate(one_hot_index, axis=1).astype(np.int32),
            int(offsets[-1]),
            np.concatenate([part.dense for part in parts], axis=1),
        )
