"""Names from outside are shown, and do nothing else."""

import io

import pytest
from rich.table import Table
from rich.text import Text

from gcaps.escaping import csv_cell, from_csv_cell, visible
from gcaps.terminal import Terminal

HOSTILE = "[/b][red]\x1b[31mred\x1b[0m \u202eright\x07"


def test_terminals_show_names_and_obey_none():
    out = io.StringIO()
    console = Terminal(file=out, force_terminal=True, color_system=None, width=200)
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    table.add_row(Text(HOSTILE))
    console.print(table)
    console.print(HOSTILE)
    assert "\x1b" not in out.getvalue()
    assert "\u202e" not in out.getvalue()
    assert out.getvalue().count("[/b][red]") == 5


def test_visible_text_has_no_line_breaks_unless_kept():
    assert visible("a\nb\x1b") == "a\\nb\\x1b"
    assert visible("a\nb\x1b", keep="\n") == "a\nb\\x1b"
    assert visible("µ – 中 é 🙂") == "µ – 中 é 🙂"


@pytest.mark.parametrize("text", ["=1+1", "@x", "+a", "-a", "'=1", "''@", "\tx", "plain", "'quoted", "-5", "+1e3", ""])
def test_csv_cells_are_no_formulas_and_come_back(text):
    cell = csv_cell(text)
    assert cell[:1] not in "=@\t" or not cell
    assert from_csv_cell(cell) == text
    assert csv_cell("-5") == "-5"
