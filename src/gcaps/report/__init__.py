"""Evaluations made readable: a table for the terminal, self-contained pages for everybody else.

Drawing needs matplotlib, which is slow to import; each name loads what it needs on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.report.comparison_page import write_comparison as write_comparison
    from gcaps.report.page import write_page as write_page
    from gcaps.report.tables import print_result as print_result

_HOMES = {
    "print_result": "tables",
    "write_comparison": "comparison_page",
    "write_page": "page",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.report", _HOMES)
