"""Seed from scikit-learn's ``random_state``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from gcaps.errors import ConfigError


def seed_of(random_state: Any) -> int:
    """Return a ``random_state`` as a number.

    Args:
        random_state: a seed; or None or a generator, from which one is drawn.

    Raises:
        ConfigError: it is none of these, or out of range.
    """
    if isinstance(random_state, int | np.integer):
        if not 0 <= random_state < 2**32:
            raise ConfigError(f"random_state: {random_state} is no seed; seeds are whole numbers from 0 to {2**32 - 1}")
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ConfigError(f"random_state: {' '.join(str(error).split())}") from error
