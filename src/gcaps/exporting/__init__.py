"""A trained network as one file that runs without gcaps: ONNX, or a program of torch.export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.exporting.arrays import Input as Input
    from gcaps.exporting.arrays import arrays_of as arrays_of
    from gcaps.exporting.arrays import inputs_of as inputs_of
    from gcaps.exporting.check import synthetic_graphs as synthetic_graphs
    from gcaps.exporting.files import Exported as Exported
    from gcaps.exporting.files import export as export

_HOMES = {
    **dict.fromkeys(("Exported", "export"), "files"),
    **dict.fromkeys(("Input", "arrays_of", "inputs_of"), "arrays"),
    "synthetic_graphs": "check",
}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names("gcaps.exporting", _HOMES)
