"""SIGINT, SIGTERM and SIGHUP end a verb within two seconds: one line, the shell's exit code, no process left behind.

The signal is raised as an exception in the main thread, so that temporary files are removed and child processes are
stopped on the way out. Compiled code may not return to Python for minutes (an SVM's solver, a large matrix product):
a watching thread, woken through a pipe by the C part of the signal handler, then does the same and ends the process.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

GRACE = 0.7
"""Seconds that the main thread has for unwinding before the watching thread ends the process."""
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_advice: list[Callable[[], str]] = []
_grace = [GRACE]
meanings: dict[int, tuple[str, int]] = {}
"""Line and exit code of signals with another meaning, such as SIGTERM from torchrun."""


class StoppedError(BaseException):
    """A signal that ends the program; not caught by ``except Exception``, nor by click."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(line_of(number))

    @property
    def exit_code(self) -> int:
        """The code with which a shell reports the signal."""
        return 128 + self.number


def line_of(number: int) -> str:
    """Return the line about a signal, with advice on how to continue."""
    if number in meanings:
        return meanings[number][0]
    said = [text for advice in _advice if (text := advice())]
    return "; ".join([f"stopped by {signal.Signals(number).name}", *said])


@contextmanager
def advising(advice: Callable[[], str]) -> Iterator[None]:
    """Add to the line of a signal that arrives inside the block; ``advice`` may return an empty text."""
    _advice.append(advice)
    try:
        yield
    finally:
        _advice.remove(advice)


@contextmanager
def patient(seconds: float) -> Iterator[None]:
    """Give the main thread more time than :data:`GRACE` for a signal that arrives inside the block."""
    _grace.append(seconds)
    try:
        yield
    finally:
        _grace.pop()


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise StoppedError where a signal arrives inside the block, and end the process if that has no effect.

    A signal that is ignored (``nohup``, a job in the background of a script) stays ignored. Outside the main thread
    nothing happens.
    """
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    reading, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    before = {number: signal.signal(number, _stop) for number in numbers}
    hook, sys.unraisablehook = sys.unraisablehook, _unraisable
    former = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    thread = threading.Thread(target=_watch, args=(reading, frozenset(numbers)), daemon=True, name="signals")
    thread.start()
    try:
        yield
    except StoppedError:
        raise  # the thread keeps watching: the interpreter may hang at shutdown
    except BaseException:
        _restore(before, former, wakeup)
        sys.unraisablehook = hook
        raise
    else:
        _restore(before, former, wakeup)
        sys.unraisablehook = hook


def _restore(before: dict[Any, Any], former: int, wakeup: int) -> None:
    signal.set_wakeup_fd(former)
    for number, handler in before.items():
        signal.signal(number, handler)
    os.close(wakeup)  # the thread reads the end of the pipe and returns


def _stop(number: int, frame: FrameType | None) -> None:
    for other in NAMES:  # the next one is for the watching thread alone
        if hasattr(signal, other):
            signal.signal(getattr(signal, other), lambda *_: None)
    raise StoppedError(number)


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Print nothing for a signal that arrived where Python ignores exceptions: the thread ends the process."""
    if unraisable.exc_type is not StoppedError:
        sys.__unraisablehook__(unraisable)


def _watch(reading: int, numbers: frozenset[int]) -> None:
    while True:
        told = os.read(reading, 1)
        if not told:
            os.close(reading)
            return
        if told[0] in numbers:
            break
    number, deadline = told[0], time.monotonic() + _grace[-1]
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([reading], [], [], left)[0]:
            break
        again = os.read(reading, 1)
        if not again or again[0] in numbers:  # a second signal: end at once
            break
    end(number)


def end(number: int) -> NoReturn:
    """End this process and its descendants at once; print the line of the signal and remove temporary files."""
    from gcaps.disk import remove_temporary

    with suppress(Exception):
        for process in _below():
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
    with suppress(Exception):
        remove_temporary()
    with suppress(Exception):
        _tell(line_of(number))
        sys.stdout.flush()
    os._exit(meanings[number][1] if number in meanings else 128 + number)


_telling = threading.Lock()
_told = threading.Event()


def _tell(line: str) -> None:
    """Print the line of a signal, unless it has been printed; of two threads the second waits for the first."""
    if not _telling.acquire(timeout=GRACE):  # the terminal is blocked
        return
    with suppress(OSError):  # it may be gone
        if not _told.is_set():
            os.write(2, f"{line}\n".encode())
            _told.set()
    _telling.release()


def _below() -> list[int]:
    """Return the processes that descend from this one."""
    import psutil

    return [process.pid for process in psutil.Process().children(recursive=True)]


def say(stopped: BaseException) -> int:
    """Print the line of a signal once, and return the exit code."""
    number = stopped.number if isinstance(stopped, StoppedError) else signal.SIGINT
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    _tell(str(stopped) or line_of(number))
    return 128 + number
