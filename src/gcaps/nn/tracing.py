"""Whether a graph of operations is being recorded, by torch.compile or torch.export."""

from __future__ import annotations

import torch


def tracing() -> bool:
    """True while torch.compile or torch.export records what a module does.

    A recorded program serves graphs of every size, so nothing in it may hang on the values of a tensor, and its
    backward pass is derived from the recording. Run eagerly, the layers do better than that: they drop rows, cut
    blocks to size and bring backward passes written by hand. This is the one question that tells the two apart.
    """
    return torch.compiler.is_compiling()
