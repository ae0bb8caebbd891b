"""Read molecules in bulk: SMILES, mol blocks or RDKit molecules → atoms and bonds, or the reason why not."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from gcaps.data.arrays import Ints
from gcaps.data.molecules.featurizer import Featurizer, MoleculeBlock
from gcaps.data.molecules.preparation import MoleculePreparation
from gcaps.data.molecules.structures import prepare_function, require_rdkit
from gcaps.errors import DataError

Form: TypeAlias = Literal["smiles", "molblock", "molecule"]
"""Form of molecules: SMILES, record of an SDF, or RDKit molecule."""
MAX_SMILES = 20_000
"""Characters of the longest SMILES that is read."""
PARALLEL = 8192
"""Molecules from which on several processes pay."""

_PR_SET_PDEATHSIG = 1
"""The option of prctl(2) that asks for a signal when the parent ends."""

B = TypeVar("B")


class Parsed(NamedTuple):
    """Some molecules, and what is wrong with others."""

    kept: Ints
    """[m] positions of the molecules among the given cells."""
    block: MoleculeBlock | None
    """Atoms and bonds of the molecules; None if there are none."""
    smiles: list[str]
    """[m] as in the source; canonical where it has none."""
    problems: dict[int, str]
    """Errors of the other cells, by position."""


class Parser:
    """Reads molecules in bulk; RDKit's own messages are not printed.

    Args:
        place: file in the error message if RDKit is missing.
        form: how molecules are given.
        preparation: how molecules become graphs.
    """

    def __init__(self, place: str, form: Form = "smiles", preparation: MoleculePreparation | None = None) -> None:
        require_rdkit(place)
        from rdkit import Chem, rdBase

        self.form, self.preparation = form, preparation or MoleculePreparation()
        self._chem: Any = Chem
        self._base: Any = rdBase
        self._featurizer = Featurizer(self.preparation)
        self._prepare = prepare_function(self.preparation)

    def __getstate__(self) -> dict[str, Any]:
        return {"form": self.form, "preparation": self.preparation}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__("", **state)  # type: ignore[misc]

    def parse(self, cells: Sequence[Any]) -> Parsed:
        """Return the molecules of some cells, and what is wrong with the others."""
        read = {"smiles": self._from_smiles, "molblock": self._from_block, "molecule": self._from_object}[self.form]
        kept: list[int] = []
        molecules: list[Any] = []
        smiles: list[str] = []
        problems: dict[int, str] = {}
        with self._base.BlockLogs():
            for i, cell in enumerate(cells):
                found = read(cell)
                if isinstance(found, str):
                    problems[i] = found
                    continue
                kept.append(i)
                molecules.append(found[0])
                smiles.append(found[1])
            if not kept:
                return Parsed(np.zeros(0, dtype=np.int64), None, [], problems)
            # charges, isotopes, radicals, chirality and stereo bonds need one of these characters
            plain = [self.form == "smiles" and not any(mark in text for mark in "[/\\|") for text in smiles]
            return Parsed(np.array(kept), self._featurizer.block(molecules, plain), smiles, problems)

    def is_smiles(self, text: str) -> bool:
        """Whether a string is a SMILES with atoms."""
        if len(text) > MAX_SMILES:
            return False
        with self._base.BlockLogs():
            found: Any = self._chem.MolFromSmiles(text.strip(), sanitize=False)
        return found is not None and found.GetNumAtoms() > 0

    def _from_smiles(self, cell: Any) -> tuple[Any, str] | str:
        if hasattr(cell, "GetNumAtoms"):
            return self._from_object(cell)
        if not isinstance(cell, str):
            return f"{cell!r} is not a SMILES"
        text = cell.strip()
        if not text:
            return "has no SMILES"
        if len(text) > MAX_SMILES:
            return f"{text[:40]!r}… has {len(text):,} characters; a SMILES may have {MAX_SMILES:,}"
        if not text.isascii() and (strange := [mark for mark in text.split()[0] if not mark.isascii()]):
            return f"{text[:80]!r} is not a SMILES: it contains {strange[0]!r}"  # RDKit would stop reading there
        found = self._chem.MolFromSmiles(text)
        if found is None:
            raw = self._chem.MolFromSmiles(text, sanitize=False)
            return f"{text[:80]!r} {self._reason(raw, 'a SMILES')}"
        return self._prepared(found, text, f"{text[:80]!r} ")

    def _from_block(self, text: str) -> tuple[Any, str] | str:
        found = self._chem.MolFromMolBlock(text)
        if found is None:
            raw = self._chem.MolFromMolBlock(text, sanitize=False)
            return "its structure " + self._reason(raw, "an MDL mol block")
        return self._from_object(found)

    def _from_object(self, found: Any) -> tuple[Any, str] | str:
        if found is None or not hasattr(found, "GetNumAtoms"):
            return f"is {found!r}, not an RDKit molecule; RDKit returns None for what it cannot read"
        if not _is_sanitized(found):
            found = self._chem.Mol(found)
            try:
                self._chem.SanitizeMol(found)
            except (ValueError, RuntimeError) as error:
                return f"is not a valid molecule: {_line_of(error)}"
        if self.preparation.hydrogens == "implicit" and any(atom.GetAtomicNum() == 1 for atom in found.GetAtoms()):
            found = self._chem.RemoveHs(found)  # as RDKit does when it reads SMILES and mol blocks
        return self._prepared(found, self._chem.MolToSmiles(found), "")

    def _prepared(self, found: Any, smiles: str, name: str) -> tuple[Any, str] | str:
        """Return the prepared molecule and its SMILES, or what is wrong."""
        if not found.GetNumAtoms():
            return f"{name}has no atoms"
        if self.preparation.changes_molecules:
            found = self._prepare(found)
            if not found.GetNumAtoms():
                return f"{name}has no atoms left after its preparation ({self.preparation})"
        return found, smiles

    def _reason(self, raw: Any, what: str) -> str:
        if raw is None:
            return f"is not {what}"
        try:
            self._chem.SanitizeMol(raw)
        except (ValueError, RuntimeError) as error:
            return f"is not a valid molecule: {_line_of(error)}"
        return "is not a valid molecule"


def _line_of(error: Exception) -> str:
    """Return what RDKit says; of a violated condition, a RuntimeError, without the place in its code."""
    text = str(error)
    return text.splitlines()[0] if isinstance(error, RuntimeError) else " ".join(text.split())


def _is_sanitized(molecule: Any) -> bool:
    try:
        molecule.GetRingInfo().NumRings()
    except RuntimeError:
        return False
    return not molecule.NeedsUpdatePropertyCache()


def parse_batches(
    batches: Iterable[B], cells_of: Callable[[B], Sequence[Any]], parser: Parser, n_jobs: int = 1
) -> Iterator[tuple[B, Parsed]]:
    """Parse batches in order, with several processes a few batches ahead of the caller.

    Args:
        batches: what is yielded beside the molecules.
        cells_of: the cells of a batch.
        parser: what reads them.
        n_jobs: processes; 1: this one.

    Raises:
        DataError: a process died.
    """
    if n_jobs == 1:
        for batch in batches:
            yield batch, parser.parse(cells_of(batch))
        return
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    waiting: deque[tuple[B, Any]] = deque()
    with ProcessPoolExecutor(n_jobs, initializer=end_with, initargs=(os.getpid(),)) as pool:
        try:
            for batch in batches:
                waiting.append((batch, pool.submit(parser.parse, cells_of(batch))))
                if len(waiting) > 2 * n_jobs:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        except BrokenProcessPool as error:
            raise DataError("a process that reads molecules died; try again with GCAPS_JOBS=1") from error
        except BaseException:
            pool.shutdown(kill_workers=True)  # what they are reading is not wanted any more
            raise
        finally:
            for _, future in waiting:
                future.cancel()


def end_with(parent: int) -> None:
    """End this process when its parent ends, however that ends, where the system has a signal for it (Linux)."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:  # it has ended before
        os._exit(1)


def default_jobs() -> int:
    """Processes that read large tables: ``GCAPS_JOBS``, by default all CPUs of this process."""
    given = os.environ.get("GCAPS_JOBS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
