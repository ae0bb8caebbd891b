"""What a cell may cost: time and memory, as people write them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gcaps.errors import ConfigError

_SECONDS: dict[str, float] = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_MIB: dict[str, float] = {"": 1 / 2**20, "k": 2**-10, "m": 1, "g": 2**10, "t": 2**20}


@dataclass(frozen=True)
class Budget:
    """The most that a cell may take; None leaves it free."""

    seconds: float | None = None
    """Of a cell, and once more of what the folds of a kernel share."""
    mib: float | None = None
    """Resident memory of the process that computes the cell, Python and its libraries counted."""

    @classmethod
    def of(cls, time_limit: str | float | None, memory_limit: str | float | None) -> Budget:
        """From ``"90s"``, ``"30m"``, ``"2h"`` or seconds, and ``"800M"``, ``"4G"`` or bytes."""
        seconds = _read(time_limit, _SECONDS, r"s?", "a time such as 90s, 30m or 2h")
        return cls(seconds, _read(memory_limit, _MIB, r"(i?b)?", "a memory such as 800M or 4G"))


def _read(given: str | float | None, units: dict[str, float], ending: str, example: str) -> float | None:
    if given is None:
        return None
    found = re.fullmatch(rf"([0-9]*\.?[0-9]+)\s*([a-z]*?){ending}", str(given).strip().lower())
    if found is None or found[2] not in units or not (value := float(found[1]) * units[found[2]]) > 0:
        raise ConfigError(f"{given!r} is not {example}")
    return value
