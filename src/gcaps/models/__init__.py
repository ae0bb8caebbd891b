"""Networks from a batch to logits, one a file."""

from gcaps.models.gcaps import GCAPS

__all__ = ["GCAPS"]
