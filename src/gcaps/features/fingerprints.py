"""Fingerprints and descriptors of molecules: one vector for each graph; needs RDKit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcaps.config import FOLDED, FingerprintName
from gcaps.data.arrays import Array, Floats, Ints, pointer
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.structures import molecules_of
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError

RADIUS = 2
"""Radius of Morgan fingerprints: 2 gives ECFP4."""
BITS = 2048
"""Length of hashed fingerprints."""
LEFT_OUT = frozenset({"Ipc"})
"""Descriptors that overflow for ordinary molecules; ``AvgIpc`` says the same."""
COUNTS = ("morgan", "atom_pairs")
"""Fingerprints whose entries are counts."""
MOLECULES = 4096
"""Molecules that are in memory together while fingerprints are computed."""


def fingerprint(
    graphs: GraphSet | PreparedSet, name: FingerprintName, *, radius: int = RADIUS, bits: int = BITS
) -> Floats:
    """Return a fingerprint or the descriptors of each molecule.

    Args:
        graphs: molecules; a PreparedSet computes each fingerprint once.
        name: ``"morgan"``, counts of circular substructures (ECFP); ``"morgan_bits"``, which of them occur;
            ``"maccs"``, 166 structural keys; ``"atom_pairs"``, counts of pairs of atoms and their distance;
            ``"descriptors"``, RDKit's two-dimensional descriptors, NaN where one is undefined.
        radius: of Morgan fingerprints.
        bits: length of hashed fingerprints.

    Returns:
        [G, ·] float32.

    Raises:
        DataError: the graphs are not molecules, or RDKit is missing.
    """
    if isinstance(graphs, PreparedSet):
        prepared = graphs
        folded = bits if name in FOLDED else None
        key = ("fingerprint", name, radius if name.startswith("morgan") else None, folded)
        return prepared.get(key, lambda: fingerprint(prepared.graphs, name, radius=radius, bits=bits))
    width = len(fingerprint_columns(name, bits))
    compute = _function(name, radius, bits)
    found = np.empty((len(graphs), width), dtype=np.float32)
    for i, molecule in enumerate(_molecules(graphs)):
        found[i] = compute(molecule)
    return found


def fingerprints(
    graphs: GraphSet | PreparedSet, names: Sequence[FingerprintName], *, radius: int = RADIUS, bits: int = BITS
) -> Floats:
    """Return several fingerprints side by side, [G, ·] float32; see :func:`fingerprint`."""
    found = [fingerprint(graphs, name, radius=radius, bits=bits) for name in names]
    return found[0] if len(found) == 1 else np.concatenate(found, axis=1)


def fingerprint_counts(
    graphs: GraphSet, name: FingerprintName, *, radius: int = RADIUS
) -> tuple[Ints, NDArray[np.uint64], Ints]:
    """Return a fingerprint that is not folded to a fixed length: the substructures of each molecule and their counts.

    Args:
        graphs: molecules.
        name: any fingerprint but ``"descriptors"``, as in :func:`fingerprint`.
        radius: of Morgan fingerprints.

    Returns:
        ptr: [G+1] molecule g has the entries ptr[g] … ptr[g+1]−1.
        substructures: [T] RDKit's identifiers.
        counts: [T] how often each occurs, from 1 on.

    Raises:
        DataError: the graphs are not molecules, or RDKit is missing.
        ConfigError: descriptors are not counts.
    """
    compute = _sparse_function(name, radius)
    sizes: list[int] = []
    keys: list[int] = []
    counts: list[int] = []
    for molecule in _molecules(graphs):
        found = compute(molecule)
        sizes.append(len(found))
        keys.extend(found.keys())
        counts.extend(found.values())
    return pointer(np.array(sizes, dtype=np.int64)), np.array(keys, dtype=np.uint64), np.array(counts, dtype=np.int64)


def _molecules(graphs: GraphSet) -> Iterator[Any]:
    """Yield the RDKit molecules of a set, of which some are in memory at a time; RDKit's messages are not printed."""
    for first in range(0, len(graphs), MOLECULES):
        found = molecules_of(graphs, np.arange(first, min(first + MOLECULES, len(graphs))))
        from rdkit import rdBase

        with rdBase.BlockLogs():
            yield from found


def fingerprint_columns(name: FingerprintName, bits: int = BITS) -> list[str]:
    """Return the name of each column of a fingerprint: names of descriptors, numbers of bits."""
    if name == "descriptors":
        return list(_descriptors())
    return [str(i) for i in range(167 if name == "maccs" else bits)]


def _descriptors() -> dict[str, Callable[[Any], float]]:
    from rdkit.Chem import Descriptors

    return {name: compute for name, compute in Descriptors.descList if name not in LEFT_OUT}


def _function(name: FingerprintName, radius: int, bits: int) -> Callable[[Any], Array]:
    from rdkit.Chem import rdFingerprintGenerator, rdMolDescriptors

    if name == "descriptors":
        functions = list(_descriptors().values())

        def descriptors(molecule: Any) -> Array:
            values = np.array([_value(compute, molecule) for compute in functions], dtype=np.float64)
            with np.errstate(over="ignore"):
                single = values.astype(np.float32)
            return np.where(np.isfinite(single), single, np.nan)

        return descriptors
    if name == "maccs":
        return lambda molecule: np.array(list(rdMolDescriptors.GetMACCSKeysFingerprint(molecule)), dtype=np.float32)
    if name == "atom_pairs":
        pairs: Any = rdFingerprintGenerator.GetAtomPairGenerator(fpSize=bits)
        return lambda molecule: pairs.GetCountFingerprintAsNumPy(molecule)
    morgan: Any = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=bits)
    if name == "morgan":
        return lambda molecule: morgan.GetCountFingerprintAsNumPy(molecule)
    return lambda molecule: morgan.GetFingerprintAsNumPy(molecule)


def _sparse_function(name: FingerprintName, radius: int) -> Callable[[Any], dict[int, int]]:
    from rdkit.Chem import rdFingerprintGenerator, rdMolDescriptors

    if name == "descriptors":
        raise ConfigError("descriptors are not counts of substructures; take morgan, morgan_bits, maccs or atom_pairs")
    if name == "maccs":
        return lambda molecule: dict.fromkeys(rdMolDescriptors.GetMACCSKeysFingerprint(molecule).GetOnBits(), 1)
    generator: Any = (
        rdFingerprintGenerator.GetAtomPairGenerator()
        if name == "atom_pairs"
        else rdFingerprintGenerator.GetMorganGenerator(radius=radius)
    )
    if name == "morgan_bits":
        return lambda molecule: dict.fromkeys(generator.GetSparseCountFingerprint(molecule).GetNonzeroElements(), 1)
    return lambda molecule: dict(generator.GetSparseCountFingerprint(molecule).GetNonzeroElements())


def _value(compute: Callable[[Any], float], molecule: Any) -> float:
    """Return a descriptor; NaN where RDKit cannot compute it, for example charges of rare elements."""
    try:
        return float(compute(molecule))
    except (ValueError, RuntimeError, ZeroDivisionError, KeyError):
        return float("nan")
