"""Import path of :class:`gcaps.data.prepared.PreparedSet` for the layers that work on batches."""

from gcaps.data.prepared import PreparedSet

__all__ = ["PreparedSet"]
