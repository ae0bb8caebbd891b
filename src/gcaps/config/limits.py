"""Times and amounts of memory as people write them: ``10m``, ``2h``, ``800M``, ``8G``."""

from __future__ import annotations

import re

from gcaps.errors import ConfigError

_SECONDS: dict[str, float] = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_MIB: dict[str, float] = {"": 1 / 2**20, "k": 2**-10, "m": 1, "g": 2**10, "t": 2**20}


def seconds_of(given: str | float | None) -> float | None:
    """Read ``"90s"``, ``"30m"``, ``"2h"`` or seconds; None stays None."""
    return _parse(given, _SECONDS, r"s?", "a time such as 90s, 30m or 2h")


def mib_of(given: str | float | None) -> float | None:
    """Read ``"800M"``, ``"4G"`` or bytes as MiB; None stays None."""
    return _parse(given, _MIB, r"(i?b)?", "a memory such as 800M or 4G")


def _parse(given: str | float | None, units: dict[str, float], ending: str, example: str) -> float | None:
    if given is None:
        return None
    found = re.fullmatch(rf"([0-9]*\.?[0-9]+)\s*([a-z]*?){ending}", str(given).strip().lower())
    if found is None or found[2] not in units or not (value := float(found[1]) * units[found[2]]) > 0:
        raise ConfigError(f"{given!r} is not {example}")
    return value
