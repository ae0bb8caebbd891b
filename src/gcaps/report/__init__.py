"""Evaluations made readable: a table for the terminal, self-contained pages for everybody else.

Drawing needs matplotlib, which is slow to import; each name loads what it needs on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcaps.report.comparison_page import write_comparison as write_comparison
    from gcaps.report.page import write_page as write_page
    from gcaps.report.tables import print_result as print_result

_HOMES = {
    "print_result": "gcaps.report.tables",
    "write_comparison": "gcaps.report.comparison_page",
    "write_page": "gcaps.report.page",
}

__all__ = ["print_result", "write_comparison", "write_page"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'gcaps.report' has no attribute {name!r}")
