"""A device other than the CPU, emulated for tests on hosts without a GPU.

Its tensors report the device ``meta`` but hold their values in CPU memory. Operations compute with these values, so
shapes may depend on data (``nonzero``, ``.item()``), and raise if tensors of both devices are mixed, as they do for
CUDA.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("meta")


@contextmanager
def emulated_device() -> Iterator[None]:
    """Create tensors on :data:`DEVICE` as emulated ones."""
    with _Creation(), _Operations():
        yield


class EmulatedTensor(Tensor):
    """A tensor on the emulated device."""

    @staticmethod
    def __new__(cls, values: Tensor) -> "EmulatedTensor":
        layout = {"strides": values.stride(), "storage_offset": values.storage_offset(), "dtype": values.dtype}
        return Tensor._make_wrapper_subclass(cls, values.size(), device=DEVICE, **layout)

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def tolist(self) -> Any:
        return self.values.tolist()

    def __repr__(self) -> str:
        return f"EmulatedTensor({self.values})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _compute(func, args, kwargs or {})


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _compute(func, args, kwargs or {})


class _Creation(TorchFunctionMode):
    """Creation from Python values, which torch does not dispatch."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.tensor and kwargs.get("device") == DEVICE:
            return func(*args, **kwargs | {"device": "cpu"}).to(DEVICE)
        if func is Tensor.new_tensor and isinstance(args[0], EmulatedTensor):
            return torch.tensor(args[1], dtype=args[0].dtype).to(DEVICE)
        return func(*args, **kwargs)


def _compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    emulated = {id(t.values): t for t in tensors if isinstance(t, EmulatedTensor)}
    # torch allows tensors of two devices in copies, and on the CPU tensors without dimensions
    stray = [t for t in tensors if not isinstance(t, EmulatedTensor) and t.dim()]
    name, device = func._schema.name, kwargs.get("device")
    if emulated and stray and name != "aten::copy_":
        raise RuntimeError(f"{func}: a tensor of shape {tuple(stray[0].shape)} is on the CPU")
    values, options = tree_map(lambda t: t.values if isinstance(t, EmulatedTensor) else t, (args, kwargs))
    out = func(*values, **options | ({} if device is None else {"device": torch.device("cpu")}))
    if name.endswith("_") and not name.endswith("__"):  # in place
        return args[0]
    here = bool(emulated) if device is None else torch.device(device) == DEVICE

    def wrapped(t: Any) -> Any:
        return emulated.get(id(t), EmulatedTensor(t)) if here and isinstance(t, Tensor) else t

    return tree_map(wrapped, out)
