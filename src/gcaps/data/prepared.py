"""A GraphSet together with results that are computed once for it and used several times."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Self, TypeVar

from gcaps.data.graphset import GraphSet

T = TypeVar("T")


class PreparedSet:
    """A GraphSet and what has been computed for all of it: colors, distances, Gram matrices, inputs of a network.

    Whoever runs several folds on one set makes a PreparedSet and passes it on, so that the folds share these results.
    They live as long as the PreparedSet does. Not safe for several threads.

    Args:
        graphs: the set.
    """

    def __init__(self, graphs: GraphSet) -> None:
        self.graphs = graphs
        self._results: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, graphs: GraphSet | PreparedSet) -> Self | PreparedSet:
        """Return ``graphs`` itself if it is prepared, else a new PreparedSet of it."""
        return graphs if isinstance(graphs, PreparedSet) else cls(graphs)

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the result called ``key``, computing it the first time.

        Args:
            key: names the result and everything it depends on except the graphs, for example ``("gram", "wl", 3)``.
            compute: function without arguments; what it returns must not be changed afterwards.
        """
        if key not in self._results:
            self._results[key] = compute()
        result: T = self._results[key]
        return result

    def set(self, key: Hashable, result: Any) -> None:
        """Store a result that was computed elsewhere, for example in another process."""
        self._results[key] = result

    def used_by(self, action: Callable[[PreparedSet], object]) -> PreparedSet:
        """Return a set with only those results that ``action`` uses, for another process.

        Args:
            action: is given a set; what it computes is kept in this one, too.
        """
        borrowed = _Borrowed(self)
        action(borrowed)
        found = PreparedSet(self.graphs)
        found._results = borrowed._results
        return found


class _Borrowed(PreparedSet):
    """Computes results in another set and notes which."""

    def __init__(self, owner: PreparedSet) -> None:
        super().__init__(owner.graphs)
        self._owner = owner

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the owner's result."""
        result = self._owner.get(key, compute)
        self._results[key] = result
        return result
