"""Reports on comparisons: a self-contained HTML page, tables for papers, and a summary for the terminal.

An evaluation of one method is a comparison with one entry and gets the same report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.report.console import print_comparison as print_comparison
    from gcaps.report.members import leaderboard as leaderboard
    from gcaps.report.page import report_text as report_text
    from gcaps.report.page import write_report as write_report

_HOMES = {
    "leaderboard": "members",
    "print_comparison": "console",
    "report_text": "page",
    "write_report": "page",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.report", _HOMES)
