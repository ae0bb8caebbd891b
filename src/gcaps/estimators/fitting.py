"""Parameters, seed and progress bar of everything that is fitted, and the classes of classifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from gcaps.data.arrays import Array
from gcaps.data.targets import Target
from gcaps.estimators.seeds import seed_of
from gcaps.training.loop import Epoch
from gcaps.training.progress import training_bar


class Fitting(BaseEstimator):  # type: ignore[misc]
    """Base class of the estimators on graphs and of the models of :mod:`gcaps.tasks`."""

    random_state: Any
    counted: ClassVar[str] = "graphs"
    """Unit of :attr:`gcaps.training.loop.Epoch.graphs_per_second` in the progress bar."""

    def _store(self, parameters: Mapping[str, Any]) -> None:
        """Store the constructor's arguments as they were given; they are checked in ``fit``."""
        for name, value in parameters.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def _seed(self) -> int:
        """Return ``random_state`` as a number."""
        return seed_of(self.random_state)

    @contextmanager
    def _progress(
        self, title: str, epochs: int, on_epoch: Callable[[Epoch], None] | None
    ) -> Iterator[Callable[[Epoch], None] | None]:
        """Yield ``on_epoch``, or with ``verbose`` a progress bar."""
        if on_epoch is not None or not getattr(self, "verbose", False):
            yield on_epoch
            return
        with training_bar(title, epochs, unit=self.counted) as report:
            yield lambda epoch: report(0, epoch)


class ClassesMixin:
    """Classes of a fitted classifier."""

    target_: Target

    @property
    def classes_(self) -> Array:
        """[C] the classes as in the source, ascending."""
        if not hasattr(self, "target_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted and has no classes_")
        assert self.target_.classes is not None
        return self.target_.classes
