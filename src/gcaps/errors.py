"""The one family of exceptions that gcaps raises on purpose.

Everything a user can mend derives from :class:`GcapsError`; the command line prints it as a single line and exits
with its ``exit_code``. Anything else that escapes is a bug of gcaps.
"""

from __future__ import annotations

from typing import ClassVar


class GcapsError(Exception):
    """Base class: something the user can mend, said in one line."""

    exit_code: ClassVar[int] = 1


class DataError(GcapsError, ValueError):
    """Graphs that cannot be read as they stand; a ValueError, as scikit-learn's checks of X and y raise.

    Args:
        problem: what is wrong and, where there is one, the remedy.
        file: the file (or member of an archive) at fault.
        line: its line, counted from 1.
    """

    exit_code: ClassVar[int] = 3

    def __init__(self, problem: str, file: str | None = None, line: int | None = None) -> None:
        self.problem, self.file, self.line = problem, file, line
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(place + problem)

    def __reduce__(self) -> tuple[type[DataError], tuple[str, str | None, int | None]]:
        return type(self), (self.problem, self.file, self.line)


class ConfigError(GcapsError, ValueError):
    """A configuration that contradicts itself or names something unknown; a ValueError, as in scikit-learn."""

    exit_code: ClassVar[int] = 4


class DownloadError(GcapsError):
    """A data set that could not be downloaded; partial downloads have been removed."""

    exit_code: ClassVar[int] = 5


class ModelError(GcapsError, ValueError):
    """A saved model that cannot be used, or data that do not fit the model."""

    exit_code: ClassVar[int] = 6


class MemoryLimitError(GcapsError):
    """A computation refused before it allocates more than the machine holds."""

    exit_code: ClassVar[int] = 7


class DataWarning(UserWarning):
    """Something in the source of graphs that is not used, or was changed on reading; the command line prints a note."""


class CheckpointWarning(UserWarning):
    """A checkpoint that could not be written or is damaged; the training continues."""


class FailedCellsError(GcapsError):
    """A comparison some of whose cells failed; the others are recorded."""

    exit_code: ClassVar[int] = 11


class DivergenceError(GcapsError, ArithmeticError):
    """A training whose loss, weights or predictions are no finite numbers any more."""

    exit_code: ClassVar[int] = 10
